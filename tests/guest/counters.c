// SPDX-License-Identifier: GPL-2.0
/*
 * counters: what the guest's shell tests need to be fast. Usage below.
 */
#include "counters.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static const char usage[] =
"Usage: counters load [ROUNDS]   allocate on all CPUs, with several policies, 64\n"
"                                pages a round; without ROUNDS until killed\n"
"       counters watch ROUNDS    read all interfaces in turn until SIGTERM, and\n"
"                                at least so often; exit status is the sum of\n"
"                                1: hit + miss != local + other\n"
"                                2: a counter went backwards\n"
"                                4: two interfaces contradict each other\n"
"       counters zones NODE      read the sum over the node's zones until SIGTERM;\n"
"                                exit status is the sum of\n"
"                                1: a counter was missing, or showed too little\n"
"                                2: a counter showed twice, or too much\n"
"                                4: the case did not come up\n"
"       counters equal           at rest: do all interfaces say the same?\n"
"       counters zero            do all interfaces show zeros?\n"
"       counters sane            does hit + miss == local + other hold in each\n"
"                                interface, and has no counter wrapped around?\n"
"       counters get COUNTER     its sum over the nodes\n"
"       counters poke FILE [UID] one write(2) of what is on standard input;\n"
"                                prints ok or the error\n";

static const char *const nodes_online = "/sys/devices/system/node/online";

static const char *name_of(int nid)
{
	static char name[16];

	if (nid == MAX_NODES)
		return "machine";
	snprintf(name, sizeof(name), "node %d", nid);
	return name;
}

/* load */

/*
 * fallocate() on a memory file gives pages by the task's policy and does not
 * clear them, so that it does little else than allocate.
 */
static void load_one(unsigned int round, unsigned int end)
{
	uint64_t nodes = read_list(nodes_online);
	int fd = memfd_create("load", 0);

	for (; round != end; round++) {
		uint64_t node = 1ull << round / 3 % MAX_NODES;

		/* Preferred, not bound: a node without memory must not kill. */
		if (round % 3 == 0 && (node & nodes))
			set_policy(MPOL_PREFERRED, node);
		else if (round % 3 == 1)
			set_policy(MPOL_INTERLEAVE, nodes);
		else
			set_policy(MPOL_DEFAULT, 0);
		if (fallocate(fd, 0, 0, 64 * 4096) || ftruncate(fd, 0))
			die("load");
	}
}

static int load(unsigned int rounds)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	for (long i = 0; i < cpus; i++) {
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			/* Without a number, not before it wraps around. */
			load_one(i, i + rounds);
			exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	return 0;
}

/* watch */

enum { IDENTITY = 1, BACKWARDS = 2, CONTRADICT = 4 };

enum { NUMASTAT, NODE_VMSTAT, ZONEINFO, VMSTAT, SUM, SOURCES };

static const char *const sources[SOURCES] = {
	"numastat", "nodeN/vmstat", "zoneinfo", "/proc/vmstat", "sum of the nodes",
};

/* What was read last, of any source and of each; the whole machine at the end. */
static struct {
	bool seen;
	int source;
	struct counters c;
	struct counters by[SOURCES];
} last[MAX_NODES + 1];

static unsigned long reads, faults[CONTRADICT + 1];

static void fault(int kind, const char *what, int source, int nid)
{
	if (faults[kind]++ < 3)
		printf("# read %lu, %s, %s: %s\n", reads, sources[source], name_of(nid), what);
}

/*
 * One read of one node's counters (nid MAX_NODES: the whole machine's). All
 * interfaces show the same totals, so no read may be below any earlier one.
 */
static void look(int source, int nid, const struct counters *c)
{
	char text[128];

	reads++;
	if (c->v[HIT] + c->v[MISS] != c->v[LOCAL] + c->v[OTHER]) {
		snprintf(text, sizeof(text), "hit %lu + miss %lu != local %lu + other %lu",
			 c->v[HIT], c->v[MISS], c->v[LOCAL], c->v[OTHER]);
		fault(IDENTITY, text, source, nid);
	}
	for (int i = 0; i < COUNTERS; i++) {
		if (c->v[i] >= last[nid].c.v[i])
			continue;
		snprintf(text, sizeof(text), "%s %lu after %s had %lu", vmstat_names[i],
			 c->v[i], sources[last[nid].source], last[nid].c.v[i]);
		fault(c->v[i] < last[nid].by[source].v[i] ? BACKWARDS : CONTRADICT,
		      text, source, nid);
	}
	last[nid].seen = true;
	last[nid].source = source;
	last[nid].c = *c;
	last[nid].by[source] = *c;
}

/* The sum of what was last seen of each node; a node that is gone keeps it. */
static struct counters sum_of_nodes(void)
{
	struct counters sum = { 0 };

	for (int nid = 0; nid < MAX_NODES; nid++)
		for (int i = 0; i < COUNTERS; i++)
			sum.v[i] += last[nid].c.v[i];
	return sum;
}

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

static int watch(unsigned long min_rounds)
{
	struct counters zoneinfo[MAX_NODES], c;
	unsigned long rounds = 0;

	signal(SIGTERM, end);
	while (!ended || rounds < min_rounds) {
		uint64_t seen = 0;
		char text[128];

		rounds++;
		for (int nid = 0; nid < MAX_NODES; nid++)
			if (read_numastat(nid, &c))
				look(NUMASTAT, nid, &c);

		/* The machine's counters are at least the sum before... */
		c = sum_of_nodes();
		look(SUM, MAX_NODES, &c);
		read_vmstat(&c);
		look(VMSTAT, MAX_NODES, &c);

		read_zoneinfo(zoneinfo);
		for (int nid = 0; nid < MAX_NODES; nid++)
			if (zoneinfo[nid].lines)
				look(ZONEINFO, nid, &zoneinfo[nid]);

		for (int nid = 0; nid < MAX_NODES; nid++)
			if (read_node_vmstat(nid, &c)) {
				look(NODE_VMSTAT, nid, &c);
				seen |= 1ull << nid;
			}

		/* ... and at most the sum after, unless a node has gone. */
		for (int nid = 0; nid < MAX_NODES; nid++)
			if (last[nid].seen && !(seen & 1ull << nid))
				goto next;
		c = sum_of_nodes();
		for (int i = 0; i < COUNTERS; i++) {
			if (last[MAX_NODES].c.v[i] <= c.v[i])
				continue;
			snprintf(text, sizeof(text), "%s %lu, nodes summed up to %lu afterwards",
				 vmstat_names[i], last[MAX_NODES].c.v[i], c.v[i]);
			fault(CONTRADICT, text, VMSTAT, MAX_NODES);
		}
next:;
	}

	printf("# %lu rounds, %lu reads: identity broken %lu, backwards %lu, contradictions %lu\n",
	       rounds, reads, faults[IDENTITY], faults[BACKWARDS], faults[CONTRADICT]);
	return (faults[IDENTITY] ? IDENTITY : 0) |
	       (faults[BACKWARDS] ? BACKWARDS : 0) |
	       (faults[CONTRADICT] ? CONTRADICT : 0);
}

/* zones */

enum { TOO_LITTLE = 1, TOO_MUCH = 2, NO_CASE = 4 };

/*
 * While the zones of a node become populated and empty. What a node counts is
 * the same whichever zone shows it, so a sum lies between what numastat showed
 * before it and after it: it is neither doubled nor missing nor going backwards.
 */
static int zones(int nid)
{
	unsigned long reads = 0, little = 0, much = 0, moved = 0;
	static struct counters zoneinfo[MAX_NODES];
	struct counters before, after;
	int lines = 0;

	signal(SIGTERM, end);
	if (!read_numastat(nid, &after))
		die("there is no node %d", nid);
	while (!ended) {
		const struct counters *sum = &zoneinfo[nid];

		before = after;
		read_zoneinfo(zoneinfo);
		if (!read_numastat(nid, &after))
			die("node %d has gone", nid);
		reads++;
		moved += lines && sum->lines != lines;
		lines = sum->lines;
		for (int i = 0; i < COUNTERS; i++) {
			if (sum->v[i] >= before.v[i] && sum->v[i] <= after.v[i])
				continue;
			if ((sum->v[i] < before.v[i] ? little++ : much++) < 3)
				printf("# read %lu: %s %lu in %d lines, numastat %lu before, %lu after\n",
				       reads, vmstat_names[i], sum->v[i], lines,
				       before.v[i], after.v[i]);
		}
	}
	printf("# %lu reads, %lu times with another number of populated zones: too little %lu, too much %lu\n",
	       reads, moved, little, much);
	return (little ? TOO_LITTLE : 0) | (much ? TOO_MUCH : 0) |
	       (moved && after.v[HIT] ? 0 : NO_CASE);
}

/* equal, zero, sane, get, poke */

struct all {
	struct counters numastat[MAX_NODES], vmstat[MAX_NODES], zoneinfo[MAX_NODES];
	struct counters sum, machine;
};

static void read_all(struct all *a)
{
	memset(a, 0, sizeof(*a));
	for (int nid = 0; nid < MAX_NODES; nid++) {
		read_numastat(nid, &a->numastat[nid]);
		read_node_vmstat(nid, &a->vmstat[nid]);
		for (int i = 0; i < COUNTERS; i++)
			a->sum.v[i] += a->numastat[nid].v[i];
	}
	a->sum.lines = COUNTERS;
	read_zoneinfo(a->zoneinfo);
	read_vmstat(&a->machine);
}

static int differ(const char *source, int nid, const struct counters *a,
		  const struct counters *b)
{
	int differences = 0;

	/* A node without memory has no zone in zoneinfo. */
	if (!a->lines)
		return 0;
	for (int i = 0; i < COUNTERS; i++) {
		if (a->v[i] == b->v[i])
			continue;
		differences++;
		printf("# %s, %s: %s is %lu, should be %lu\n",
		       source, name_of(nid), vmstat_names[i], a->v[i], b->v[i]);
	}
	return differences;
}

static int equal(void)
{
	static struct all a, b;
	int differences = 0;

	/* At rest is when nothing has moved from one round to the next. */
	for (int try = 0; ; try++) {
		read_all(&a);
		read_all(&b);
		if (!memcmp(a.numastat, b.numastat, sizeof(a.numastat)))
			break;
		if (try == 100)
			die("the machine is not at rest");
		usleep(100000);
	}
	for (int nid = 0; nid < MAX_NODES; nid++) {
		differences += differ("nodeN/vmstat", nid, &a.vmstat[nid], &a.numastat[nid]);
		differences += differ("zoneinfo", nid, &a.zoneinfo[nid], &a.numastat[nid]);
	}
	differences += differ("/proc/vmstat", MAX_NODES, &a.machine, &a.sum);
	return differences != 0;
}

static int zero(void)
{
	static const struct counters zeros = { .lines = COUNTERS };
	static struct all a;
	int differences = 0;

	read_all(&a);
	for (int nid = 0; nid < MAX_NODES; nid++) {
		differences += differ("numastat", nid, &a.numastat[nid], &zeros);
		differences += differ("nodeN/vmstat", nid, &a.vmstat[nid], &zeros);
		differences += differ("zoneinfo", nid, &a.zoneinfo[nid], &zeros);
	}
	differences += differ("/proc/vmstat", MAX_NODES, &a.machine, &zeros);
	return differences != 0;
}

static int insane(const char *source, int nid, const struct counters *c)
{
	bool wrapped = false;

	for (int i = 0; i < COUNTERS; i++)
		wrapped |= c->v[i] >> 62;
	if (!wrapped && c->v[HIT] + c->v[MISS] == c->v[LOCAL] + c->v[OTHER])
		return 0;
	printf("# %s, %s:", source, name_of(nid));
	for (int i = 0; i < COUNTERS; i++)
		printf(" %s %lu", vmstat_names[i], c->v[i]);
	putchar('\n');
	return 1;
}

static int sane(void)
{
	static struct all a;
	int bad = 0;

	read_all(&a);
	for (int nid = 0; nid < MAX_NODES; nid++) {
		bad += insane("numastat", nid, &a.numastat[nid]);
		bad += insane("nodeN/vmstat", nid, &a.vmstat[nid]);
		bad += insane("zoneinfo", nid, &a.zoneinfo[nid]);
	}
	return (bad + insane("/proc/vmstat", MAX_NODES, &a.machine)) != 0;
}

static int get(const char *name)
{
	static struct all a;

	read_all(&a);
	for (int i = 0; i < COUNTERS; i++) {
		if (strcmp(name, vmstat_names[i]))
			continue;
		printf("%lu\n", a.sum.v[i]);
		return 0;
	}
	fputs(usage, stderr);
	return 1;
}

static int poke(const char *path, const char *uid)
{
	static char buf[1 << 16];
	size_t len = fread(buf, 1, sizeof(buf), stdin);
	int fd;

	if (uid && (setgid(atoi(uid)) || setuid(atoi(uid))))
		die("cannot become user %s", uid);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, buf, len) < 0)
		puts(strerrorname_np(errno));
	else
		puts("ok");
	return 0;
}

int main(int argc, char **argv)
{
	const char *command = argc > 1 ? argv[1] : "";

	if (!strcmp(command, "load") && argc <= 3)
		return load(argc == 3 ? strtoul(argv[2], NULL, 10) : -1u);
	if (!strcmp(command, "watch") && argc == 3)
		return watch(strtoul(argv[2], NULL, 10));
	if (!strcmp(command, "zones") && argc == 3)
		return zones(atoi(argv[2]));
	if (!strcmp(command, "equal") && argc == 2)
		return equal();
	if (!strcmp(command, "zero") && argc == 2)
		return zero();
	if (!strcmp(command, "sane") && argc == 2)
		return sane();
	if (!strcmp(command, "get") && argc == 3)
		return get(argv[2]);
	if (!strcmp(command, "poke") && (argc == 3 || argc == 4))
		return poke(argv[2], argc == 4 ? argv[3] : NULL);
	fputs(usage, stderr);
	return 64;
}
