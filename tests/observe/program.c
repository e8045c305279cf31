/* One small program with a way of ending or behaving for each row of tests/observe/test_invisible.py. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static void say(const char *text) { if (write(1, text, strlen(text)) < 0) _exit(9); }

static void on_signal(int number)
{
	char line[64];
	struct winsize size = {0};
	if (number == SIGWINCH && !ioctl(1, TIOCGWINSZ, &size)) snprintf(line, sizeof line, "size %dx%d\n", size.ws_row, size.ws_col);
	else snprintf(line, sizeof line, "signal %d\n", number);
	say(line);
}

static void kinds(void) /* what an unchanged program may ask of its descriptors */
{
	char line[128];
	for (int fd = 0; fd < 3; fd++) {
		struct stat st = {0};
		int bad = fstat(fd, &st);
		snprintf(line, sizeof line, "%d %d %o tty=%d\n", fd, bad, bad ? 0 : st.st_mode & S_IFMT, isatty(fd));
		say(line);
	}
	snprintf(line, sizeof line, "session=%d foreground=%d\n", getsid(0) != getpid(), tcgetpgrp(0) == getpgrp());
	say(line);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	if (!strcmp(what, "exit")) { say("out\n"); if (write(2, "err\n", 4) < 0) return 9; say("out again\n"); return 3; }
	if (!strcmp(what, "segv")) { say("before\n"); raise(SIGSEGV); }
	if (!strcmp(what, "kill")) { say("before\n"); raise(SIGKILL); }
	if (!strcmp(what, "kinds")) { kinds(); return 0; }
	if (!strcmp(what, "pause")) { say("ready\n"); for (;;) pause(); }
	if (!strcmp(what, "handle")) { /* takes so many signals, or until SIGINT, then ends */
		sigset_t all;
		sigfillset(&all);
		sigdelset(&all, SIGCONT);
		sigprocmask(SIG_BLOCK, &all, 0);
		say("ready\n");
		for (int n = atoi(argv[2]), number = 0; n && number != SIGINT; n--) on_signal(number = sigwaitinfo(&all, 0));
		return 0;
	}
	if (!strcmp(what, "orphan")) { if (!fork()) { sleep(atoi(argv[2])); say("late\n"); return 0; } say("done\n"); return 0; }
	if (!strcmp(what, "flood")) { /* lines to 1 and 2 in turn */
		long lines = atol(argv[2]);
		for (long n = 0; n < lines; n++) {
			char line[64];
			int length = snprintf(line, sizeof line, "line %ld of %ld with some text\n", n, lines);
			if (write(1 + (n % 3 == 0), line, length) != length) return 9;
		}
		return 0;
	}
	if (!strcmp(what, "copy")) { char b[4096]; ssize_t n; while ((n = read(0, b, sizeof b)) > 0) if (write(1, b, n) != n) return 9; return 0; }
	return 99;
}
