// SPDX-License-Identifier: GPL-2.0
/*
 * line_bench: the cache lines that allocating CPUs and a reader of their counters
 * pass to each other, for the plugin cachelines (bench/plugin).
 *
 * Write "ROUNDS FILE" to the file line_bench in debugfs. In each round each CPU but
 * the last allocates and frees one page, and then the last CPU reads FILE to its
 * end; with FILE "-" it does nothing. One acts after the other, in this order:
 * between two allocations of a CPU all other CPUs have made one, whatever else the
 * machine does. That is as mixed as allocations can be, without the accidents of
 * two at the same instant.
 */
#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/irqflags.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../../plugin/marks.h"

#define ALLOCATION	1
#define PASS		2

/* Rounds before those that count: lists and lines find their places. */
#define WARM		8
#define MAX_ROUNDS	1000
#define BUFFER		65536

struct game {
	unsigned int players, rounds;
	struct file *file;
	void *buffer;
	struct completion over;
	atomic_t there;
	int error;
	/* Counts the turns of all players. */
	unsigned int turn ____cacheline_aligned_in_smp;
};

struct player {
	struct task_struct *task;
	struct game *game;
	unsigned int me;
};

/* One game at a time. */
static DEFINE_MUTEX(bench_lock);

static int allocate(void)
{
	struct page *page;

	mark(MARK_BEGIN + ALLOCATION);
	page = alloc_pages(GFP_NOWAIT | __GFP_NOWARN, 0);
	if (page)
		__free_pages(page, 0);
	mark(MARK_END);
	return page ? 0 : -ENOMEM;
}

static int read_all(struct game *game)
{
	loff_t pos = 0;
	ssize_t got;

	mark(MARK_BEGIN + PASS);
	do {
		got = kernel_read(game->file, game->buffer, BUFFER, &pos);
	} while (got > 0);
	mark(MARK_END);
	return got;
}

static int act(struct player *player)
{
	struct game *game = player->game;

	if (player->me != game->players - 1)
		return allocate();
	return game->file ? read_all(game) : 0;
}

static int play(void *data)
{
	struct player *player = data;
	struct game *game = player->game;
	unsigned int round, me = player->me, last = game->players - 1;
	unsigned long flags;
	int error;

	atomic_inc(&game->there);
	while (atomic_read(&game->there) < game->players) {
		cond_resched();
		cpu_relax();
	}

	/* Reading may sleep; the others are to do nothing but what is counted. */
	if (me != last)
		local_irq_save(flags);
	for (round = 0; round < game->rounds; round++) {
		/* Pairs with the release below: what the others did is done. */
		while (smp_load_acquire(&game->turn) != round * game->players + me)
			cpu_relax();
		if (me == 0 && round == 0)
			mark(MARK_ON);
		if (me == 0 && round == WARM)
			mark(MARK_COUNT);
		error = act(player);
		if (error)
			game->error = error;
		if (me == last && round == game->rounds - 1)
			mark(MARK_OFF);
		/* Pairs with the acquire of whose turn it is then. */
		smp_store_release(&game->turn, game->turn + 1);
	}
	if (me != last)
		local_irq_restore(flags);

	/* The last one out; the game is freed then. */
	if (atomic_dec_and_test(&game->there))
		complete(&game->over);
	return 0;
}

/* The caller holds the CPUs, so that those online stay the same. */
static int start(struct game *game)
{
	struct player *players;
	unsigned int cpu, i = 0;

	game->players = num_online_cpus();
	if (game->players < 2)
		return -EINVAL;
	players = kcalloc(game->players, sizeof(*players), GFP_KERNEL);
	if (!players)
		return -ENOMEM;
	for_each_online_cpu(cpu) {
		struct player *player = &players[i];
		struct task_struct *task;

		*player = (struct player){ .game = game, .me = i };
		task = kthread_create_on_cpu(play, player, cpu, "line_bench/%u");
		if (IS_ERR(task)) {
			game->error = PTR_ERR(task);
			break;
		}
		player->task = task;
		i++;
	}
	if (i == game->players) {
		for (i = 0; i < game->players; i++)
			wake_up_process(players[i].task);
		wait_for_completion(&game->over);
	} else {
		/* Never woken, so never run. */
		while (i)
			kthread_stop(players[--i].task);
	}
	kfree(players);
	return game->error;
}

static int run(unsigned int rounds, const char *path)
{
	struct game *game;
	int ret;

	game = kzalloc_obj(*game);
	if (!game)
		return -ENOMEM;
	init_completion(&game->over);
	game->rounds = WARM + rounds;
	game->buffer = kvmalloc(BUFFER, GFP_KERNEL);
	if (!game->buffer) {
		ret = -ENOMEM;
		goto free_game;
	}
	if (strcmp(path, "-")) {
		game->file = filp_open(path, O_RDONLY, 0);
		if (IS_ERR(game->file)) {
			ret = PTR_ERR(game->file);
			goto free_buffer;
		}
	}
	cpus_read_lock();
	ret = start(game);
	cpus_read_unlock();
	if (game->file)
		filp_close(game->file, NULL);
free_buffer:
	kvfree(game->buffer);
free_game:
	kfree(game);
	return ret;
}

static ssize_t line_bench_write(struct file *file, const char __user *from,
				size_t size, loff_t *ppos)
{
	char text[128] = "", path[100];
	unsigned int rounds;
	int ret;

	if (size >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, size))
		return -EFAULT;
	if (sscanf(text, "%u %99s", &rounds, path) != 2 || !rounds || rounds > MAX_ROUNDS)
		return -EINVAL;

	mutex_lock(&bench_lock);
	ret = run(rounds, path);
	mutex_unlock(&bench_lock);
	return ret ?: size;
}

static const struct file_operations line_bench_fops = {
	.owner	= THIS_MODULE,
	.write	= line_bench_write,
};

static struct dentry *line_bench_file;

static int __init line_bench_init(void)
{
	line_bench_file = debugfs_create_file("line_bench", 0200, NULL, NULL,
					      &line_bench_fops);
	return 0;
}
module_init(line_bench_init);

static void __exit line_bench_exit(void)
{
	debugfs_remove(line_bench_file);
}
module_exit(line_bench_exit);

MODULE_DESCRIPTION("Cache lines between allocating CPUs and a reader");
MODULE_LICENSE("GPL");
