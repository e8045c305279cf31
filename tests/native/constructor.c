/* A library that acts when it is loaded: it writes the user's id, the group's, the number of further groups, and whether
 * the process may gain rights (no_new_privs) to the file MARK. */
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

__attribute__((constructor)) static void act(void) {
    FILE *mark = fopen(MARK, "w");
    if (mark) {
        fprintf(mark, "%d %d %d %d\n", getuid(), getgid(), getgroups(0, 0), prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
        fclose(mark);
    }
}
