/* What both stub libraries do on demand.
 *
 * STUB_STATUS=F:N[,...]  status N from function F ("cudnnSetStream:7")
 * STUB_DO=F:WHAT[,...]   on entry of F: segv abort hang stubborn spam close kill exit grandchild forge
 * "forge" writes what no child of ours would into every pipe that is open, the result channel among them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *setting(const char *variable, const char *function) {
    static char word[64];
    const char *at = getenv(variable);
    size_t n = strlen(function);
    while (at && *at) {
        if (!strncmp(at, function, n) && at[n] == ':') {
            size_t length = strcspn(at + n + 1, ",");
            if (length >= sizeof word) length = sizeof word - 1;
            memcpy(word, at + n + 1, length);
            word[length] = 0;
            return word;
        }
        at = strchr(at, ',');
        if (at) at++;
    }
    return NULL;
}

static void misbehave(const char *function) {
    const char *what = setting("STUB_DO", function);
    if (!what) return;
    if (!strcmp(what, "segv")) { volatile int *nowhere = NULL; *nowhere = 1; }
    if (!strcmp(what, "abort")) { fputs("Could not load library libcublasLt.so.12. Error: libcublasLt.so.12: cannot open shared object file: No such file or directory\n", stderr); abort(); }
    if (!strcmp(what, "hang")) for (;;) pause();
    if (!strcmp(what, "stubborn")) { signal(SIGTERM, SIG_IGN); for (;;) pause(); }
    if (!strcmp(what, "spam")) {
        static char block[1 << 16];
        memset(block, '#', sizeof block);
        block[0] = '\033';
        for (int i = 0; i < 1600; i++) if (write(2, block, sizeof block) < 0) break;
        fputs("the last words\n", stderr);
    }
    if (!strcmp(what, "close")) for (int fd = 0; fd < 1024; fd++) close(fd);
    if (!strcmp(what, "kill")) kill(0, SIGKILL);
    if (!strcmp(what, "exit")) _exit(3);
    if (!strcmp(what, "grandchild") && fork() == 0) for (;;) pause();
    if (!strcmp(what, "forge")) {
        static char line[3 << 20];
        const char *junk = "not json\n{\"did\": 5}\n[1,2]\n\xff\xfe\n{\"status\":\"x\",\"did\":\"y\"}\n";
        memset(line, 'x', sizeof line);
        line[sizeof line - 1] = '\n';
        for (int fd = 3; fd < 1024; fd++) {
            struct stat s;
            if (fstat(fd, &s) || !S_ISFIFO(s.st_mode)) continue;
            if (write(fd, junk, strlen(junk)) < 0) continue;
            for (size_t done = 0; done < sizeof line;) {
                ssize_t n = write(fd, line + done, sizeof line - done);
                if (n < 0) break;
                done += (size_t)n;
            }
        }
    }
}
