// SPDX-License-Identifier: GPL-2.0
/*
 * spawn SECONDS SEED: storms of fork, vfork, exec, threads and exits, each child with
 * some memory of its own, some of them killed in the middle. Ends with 0 if all that was
 * not killed ended well.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static unsigned int seed;

static unsigned int rnd(unsigned int limit)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % limit;
}

static void use_memory(unsigned int pages)
{
	size_t len = (pages + 1) * 4096UL, i;
	char *map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		return;
	for (i = 0; i < len; i += 4096)
		map[i] = 1;
	if (pages % 2)
		munmap(map, len);
}

static void *thread(void *pages)
{
	use_memory((long)pages);
	return NULL;
}

static void some_threads(void)
{
	pthread_t thread_id;
	int nr = rnd(4);

	while (nr--)
		pthread_create(&thread_id, NULL, thread, (void *)(long)rnd(64));
}

static void child(char *self)
{
	int generation;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (generation = 0; generation < 3; generation++) {
		switch (rnd(4)) {
		case 0:		/* exec in the middle of threads, or not */
			some_threads();
			execl(self, self, "end", NULL);
			/* No memory for it: that is no fault. */
			break;
		case 1:		/* the first thread leaves, and all with it */
			some_threads();
			break;
		default:
			use_memory(rnd(64));
			break;
		}
		if (fork())
			break;
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	unsigned long spawned = 0, killed = 0, bad = 0;
	int status, alive = 0;
	time_t end;
	pid_t pid;

	if (argc == 2)
		return 0;
	if (argc != 3) {
		fprintf(stderr, "usage: spawn SECONDS SEED\n");
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	seed = atoi(argv[2]);
	end = time(NULL) + atoi(argv[1]);
	while (time(NULL) < end || alive) {
		if (time(NULL) < end && alive < 16) {
			rnd(2);
			pid = rnd(4) ? fork() : vfork();
			if (!pid) {
				if (seed % 4 == 0)
					_exit(0);
				execl(argv[0], argv[0], "end", NULL);
				_exit(0);
			}
			if (pid > 0) {
				alive++;
				spawned++;
			}
			pid = fork();
			if (!pid)
				child(argv[0]);
			if (pid > 0) {
				alive++;
				spawned++;
				if (!rnd(4) && !kill(pid, SIGKILL))
					killed++;
			}
		}
		pid = waitpid(-1, &status, alive < 16 && time(NULL) < end ? WNOHANG : 0);
		if (pid > 0) {
			alive--;
			if (!(WIFEXITED(status) && !WEXITSTATUS(status)) &&
			    !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)) {
				printf("# a child ended with status %#x\n", status);
				bad++;
			}
		} else if (pid < 0 && errno == ECHILD) {
			alive = 0;
		}
	}
	printf("# %lu children, %lu of them killed, %lu ended badly\n", spawned, killed, bad);
	return bad != 0;
}
