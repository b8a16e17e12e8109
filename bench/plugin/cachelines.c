// SPDX-License-Identifier: GPL-2.0
/*
 * cachelines: a plugin for QEMU that counts the cache lines which CPUs of the
 * guest pass to each other.
 *
 *	-plugin cachelines.so,map=System.map,out=FILE
 *
 * Every load and store of every CPU goes through the model of lines.h, by
 * physical address, as soon as the guest switches it on; what happens within an
 * operation that the guest has marked is counted (marks.h). A locked operation is a
 * store: it gets the line for itself at once. When the guest switches off, FILE
 * gets, each line beginning with the number of the window and the operation's kind,
 *
 *	WINDOW KIND operations COUNT
 *	WINDOW KIND SYMBOL FETCH OWN UPGRADE	of instructions in that function
 *
 * Instructions outside of System.map are [module] or [user]. That needs nokaslr.
 *
 * Not seen: the hardware's walks of page tables, instruction fetches, prefetching,
 * the second page of an access across pages, and devices.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "qemu-plugin.h"
#include "lines.h"
#include "marks.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

/* An instruction that was translated; kept for ever, found by address. */
struct insn {
	struct insn *next;
	uint64_t vaddr;
	bool locked;
	uint64_t counts[MARK_KINDS][LINE_EVENTS];
};

struct symbol {
	uint64_t vaddr;
	char *name;
	uint64_t counts[LINE_EVENTS];
};

#define INSN_BUCKETS (1 << 16)

/* Guards all that follows, but @on may be read without it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool on;
static struct lines lines;
static struct insn *insns[INSN_BUCKETS];
/* What each CPU is in the middle of; 0 is nothing that counts. */
static unsigned int kinds[LINES_MAX_CPUS];
static uint64_t operations[MARK_KINDS];
static unsigned int window;

static struct symbol *symbols;
static size_t nr_symbols;
static struct symbol module = { .name = "[module]" };
static struct symbol user = { .name = "[user]" };
static FILE *out;

static struct symbol *symbol_of(uint64_t vaddr)
{
	size_t low = 0, high = nr_symbols;

	if (!(vaddr >> 63))
		return &user;
	/* The last symbol at or below the address. */
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (symbols[middle].vaddr <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	/* The last of all is _end. */
	return low && low < nr_symbols ? &symbols[low - 1] : &module;
}

static void report_symbol(unsigned int kind, struct symbol *symbol)
{
	uint64_t *counts = symbol->counts;

	if (counts[LINE_FETCH] | counts[LINE_OWN] | counts[LINE_UPGRADE])
		fprintf(out, "%u %u %s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
			window, kind, symbol->name, counts[LINE_FETCH],
			counts[LINE_OWN], counts[LINE_UPGRADE]);
	memset(counts, 0, sizeof(symbol->counts));
}

static void report(void)
{
	unsigned int kind, event;
	struct insn *insn;
	size_t i;

	window++;
	for (kind = 1; kind < MARK_KINDS; kind++) {
		if (!operations[kind])
			continue;
		fprintf(out, "%u %u operations %" PRIu64 "\n",
			window, kind, operations[kind]);
		for (i = 0; i < INSN_BUCKETS; i++)
			for (insn = insns[i]; insn; insn = insn->next)
				for (event = 0; event < LINE_EVENTS; event++)
					symbol_of(insn->vaddr)->counts[event] +=
						insn->counts[kind][event];
		for (i = 0; i < nr_symbols; i++)
			report_symbol(kind, &symbols[i]);
		report_symbol(kind, &module);
		report_symbol(kind, &user);
	}
	fflush(out);
}

static void forget_counts(void)
{
	struct insn *insn;
	size_t i;

	memset(operations, 0, sizeof(operations));
	for (i = 0; i < INSN_BUCKETS; i++)
		for (insn = insns[i]; insn; insn = insn->next)
			memset(insn->counts, 0, sizeof(insn->counts));
}

static void at_mark(unsigned int cpu, void *data)
{
	unsigned int message = (uintptr_t)data;

	pthread_mutex_lock(&lock);
	if (message == MARK_ON) {
		lines_forget(&lines);
		forget_counts();
		on = true;
	} else if (message == MARK_COUNT) {
		forget_counts();
	} else if (message == MARK_OFF) {
		on = false;
		report();
	} else if (message == MARK_END) {
		kinds[cpu] = 0;
	} else if (on) {
		kinds[cpu] = message - MARK_BEGIN;
		operations[kinds[cpu]]++;
	}
	pthread_mutex_unlock(&lock);
}

static void at_access(unsigned int cpu, qemu_plugin_meminfo_t info,
		      uint64_t vaddr, void *data)
{
	struct qemu_plugin_hwaddr *hwaddr;
	struct insn *insn = data;
	uint64_t paddr, last;
	bool store;

	if (!__atomic_load_n(&on, __ATOMIC_RELAXED))
		return;
	hwaddr = qemu_plugin_get_hwaddr(info, vaddr);
	if (!hwaddr || qemu_plugin_hwaddr_is_io(hwaddr))
		return;
	paddr = qemu_plugin_hwaddr_phys_addr(hwaddr);
	last = paddr + (1ull << qemu_plugin_mem_size_shift(info)) - 1;
	if ((last ^ paddr) >> 12)
		last = paddr;
	store = insn->locked || qemu_plugin_mem_is_store(info);

	pthread_mutex_lock(&lock);
	for (;;) {
		enum line_event event = lines_access(&lines, paddr, cpu, store);

		if (event != LINE_NOTHING)
			insn->counts[kinds[cpu]][event]++;
		/* An access may lie across two lines. */
		if (paddr >> LINE_BITS == last >> LINE_BITS)
			break;
		paddr = last;
	}
	pthread_mutex_unlock(&lock);
}

/* Does it have the lock prefix, or is it an xchg with memory, which needs none? */
static bool is_locked(const uint8_t *code, size_t size)
{
	size_t i;

	for (i = 0; i + 1 < size; i++) {
		switch (code[i]) {
		case 0xf0:
			return true;
		case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64: case 0x65:
		case 0x66: case 0x67: case 0xf2: case 0xf3:
		case 0x40 ... 0x4f:
			continue;
		case 0x86: case 0x87:
			return code[i + 1] >> 6 != 3;
		default:
			return false;
		}
	}
	return false;
}

/* Translated anew, an instruction goes on counting where it was. */
static struct insn *find_insn(uint64_t vaddr, bool locked)
{
	struct insn **bucket = &insns[(vaddr * 0x9e3779b97f4a7c15ull) >> 48];
	struct insn *insn;

	/* Programs of the guest may have different ones at one address. */
	for (insn = *bucket; insn; insn = insn->next)
		if (insn->vaddr == vaddr && insn->locked == locked)
			return insn;
	insn = calloc(1, sizeof(*insn));
	if (!insn)
		abort();
	insn->vaddr = vaddr;
	insn->locked = locked;
	insn->next = *bucket;
	*bucket = insn;
	return insn;
}

static void at_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	static const uint8_t head[] = { 0x0f, 0x1f, 0x80 };
	static const uint8_t tail[] = { 0x75, 0x6d, 0x6e };
	size_t i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		const uint8_t *code = qemu_plugin_insn_data(insn);
		size_t size = qemu_plugin_insn_size(insn);
		uint64_t vaddr = qemu_plugin_insn_vaddr(insn);

		if (size == 7 && !memcmp(code, head, 3) && !memcmp(code + 4, tail, 3))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, at_mark,
				QEMU_PLUGIN_CB_NO_REGS, (void *)(uintptr_t)code[3]);
		else
			qemu_plugin_register_vcpu_mem_cb(insn, at_access,
				QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
				find_insn(vaddr, is_locked(code, size)));
	}
	pthread_mutex_unlock(&lock);
}

/* Code alone: System.map is sorted by address, with per-CPU symbols in front. */
static bool read_symbols(const char *path)
{
	FILE *map = fopen(path, "r");
	char type, name[512];
	uint64_t vaddr;

	if (!map)
		return false;
	while (fscanf(map, "%" SCNx64 " %c %511s", &vaddr, &type, name) == 3) {
		if (!(vaddr >> 63) || (!strchr("tTwW", type) && strcmp(name, "_end")))
			continue;
		if (!(nr_symbols & (nr_symbols - 1)))
			symbols = realloc(symbols, (nr_symbols ? 2 * nr_symbols : 1) *
						   sizeof(*symbols));
		if (!symbols)
			abort();
		symbols[nr_symbols++] = (struct symbol){
			.vaddr = vaddr, .name = strdup(name),
		};
	}
	fclose(map);
	return nr_symbols;
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id,
					   const qemu_info_t *info,
					   int argc, char **argv)
{
	int i;

	if (!info->system_emulation || strcmp(info->target_name, "x86_64") ||
	    info->system.max_vcpus > LINES_MAX_CPUS) {
		fprintf(stderr, "cachelines: an x86-64 system with at most %d CPUs, please\n",
			LINES_MAX_CPUS);
		return 1;
	}
	for (i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "map=", 4) && read_symbols(argv[i] + 4))
			continue;
		if (!strncmp(argv[i], "out=", 4) && (out = fopen(argv[i] + 4, "w")))
			continue;
		fprintf(stderr, "cachelines: cannot use %s\n", argv[i]);
		return 1;
	}
	if (!out || !nr_symbols) {
		fprintf(stderr, "cachelines: map=System.map,out=FILE are needed\n");
		return 1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, at_translation);
	return 0;
}
