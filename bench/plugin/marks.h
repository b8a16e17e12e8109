/* SPDX-License-Identifier: GPL-2.0 */
/*
 * marks.h: what code in the guest, kernel or program, tells the plugin.
 *
 * A mark is a NOP with a memory operand that nothing else uses,
 *
 *	0f 1f 80 XX 75 6d 6e	nopl 0x6e6d75XX(%rax)
 *
 * in which XX is the message. It costs one instruction, on real machines too.
 */
#ifndef MARKS_H
#define MARKS_H

/* Follow the lines from here on: forget what was before, and all counts. */
#define MARK_ON		0x01
/* Set all counts to 0, but know the lines. */
#define MARK_COUNT	0x02
/* Report the counts, and follow no longer. */
#define MARK_OFF	0x03
/* This CPU begins an operation of some kind, 1 to 7; only these are counted. */
#define MARK_BEGIN	0x10
/* It ends. */
#define MARK_END	0x20
#define MARK_KINDS	8

#define MARK_TEXT_(n)	#n
#define MARK_TEXT(n)	MARK_TEXT_(n)

/* @message is a sum of numbers. "memory": what is marked stays inside. */
#define mark(message) \
	asm volatile(".byte 0x0f, 0x1f, 0x80, " MARK_TEXT(message) \
		     ", 0x75, 0x6d, 0x6e" : : : "memory")

#endif
