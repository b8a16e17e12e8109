#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
# scripts/boot: the exit statuses, and that each topology is the machine it
# promises to be.
bats_require_minimum_version 1.5.0

setup_file() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	BUILD=${BUILD_DIR:-$ROOT/build}
	# Either kernel will do; the series is what people boot.
	local kernel
	for kernel in series base; do
		[ ! -f "$BUILD/$kernel/arch/x86/boot/bzImage" ] || break
		kernel=
	done
	KERNEL=${KERNEL:-$kernel}
	export ROOT BUILD KERNEL
	[ -n "$KERNEL" ] || return 0
	"$ROOT/scripts/build-guest"
}

setup() {
	[ -n "$KERNEL" ] || skip "no kernel is built (make kernel or make kernel-base)"
	unset TOPO RUN INITRD APPEND ICOUNT DISK QEMU_ARGS TIMEOUT ALLOW
	export LOG=$BATS_TEST_TMPDIR/log RESULTS=$BATS_TEST_TMPDIR/results
	cd "$BATS_TEST_TMPDIR" || return
}

# boot STATUS: what happened instead is worth more than the wrong number.
boot() {
	run "$ROOT/scripts/boot"
	[ "$status" = "$1" ] && return
	echo "exit status $status, expected $1; the end of the console:"
	tail -n 40 "$LOG"
	return 1
}

ending() { RUN=ending APPEND="loglevel=5 ending=$1" boot "$2"; }

@test "boot: power-off after a run that passes is 0" {
	ending pass 0
	[[ $output = *"GUEST-EXIT: 0"* ]]
	[ "$(tail -n 2 "$RESULTS")" = $'ok 1 ending\n# GUEST-EXIT: 0' ]
}

@test "boot: the line printed first can be pasted, and boots the same" {
	RUN=ending APPEND="ending=pass dyndbg=\"file it's.c +p\"" boot 0
	run -0 timeout 300 bash -c "${lines[0]}" </dev/null
	[[ $output = *"GUEST-EXIT: 0"* ]]
	grep -q "Command line: .* ending=pass dyndbg=\"file it's.c +p\"" "$LOG"
}

@test "boot: a run that fails is 1, a run that skips is not" {
	ending fail 1
	[[ $output = *"a run failed"* ]]
	grep -q '^not ok 1 ending' "$RESULTS"
	ending skip 0
	grep -q '^ok 1 ending # SKIP' "$RESULTS"
}

@test "boot: one failing run of several is 1, and the others still run" {
	APPEND="loglevel=5 ending=pass" RUN=ending,nonesuch,machine boot 1
	[[ $output = *"no run is named 'nonesuch'"* ]]
	[[ $output = *"node distances:"* ]]
	[ "$(grep -E '^(1\.\.|ok|not ok)' "$RESULTS" | paste -sd';')" = \
		"1..3;ok 1 ending;not ok 2 nonesuch # exit status 127;ok 3 machine" ]
}

@test "boot: power-off without a verdict is 1" {
	ending off 1
	[[ $output = *"without a verdict"* ]]
}

@test "boot: a panic is 2" {
	ending panic 2
}

@test "boot: a splat is 3 though the run passes, unless it is allowed" {
	ending splat 3
	[[ $output = *"GUEST-EXIT: 0"* ]]
	echo 'WARNING: .*example\+0x0' >allow
	ALLOW=allow ending splat 0
	echo 'WARNING: .*another' >allow
	ALLOW=allow ending splat 3
}

@test "boot: a program that prints the words of a splat is no splat" {
	ending print-splat 0
	[[ $output = *"WARNING: CPU"* ]]
}

@test "boot: the splats it knows, in the kernel's words" {
	RUN=ending APPEND="loglevel=5 ending=splats" boot 3
	printed=$(grep -c 'splat-example' "$LOG")
	seen=$(grep -c '^boot: splat: .*splat-example' <<<"$output")
	[ "$printed" -ge 15 ]
	[ "$seen" = "$printed" ]
}

@test "boot: the time limit is 124" {
	TIMEOUT=20 ending hang 124
}

@test "boot: what cannot start is 125, with the way out" {
	QEMU_ARGS=-nonesuch ending pass 125
	TOPO=nonesuch boot 125
	[[ $output = *"way out: TOPO="*"2n"* ]]
	KERNEL=/nonesuch boot 125
	INITRD=/nonesuch boot 125
	TIMEOUT=soon boot 125
}

@test "boot: DISK=1 is the disk that scripts/build-disk makes" {
	"$ROOT/scripts/build-disk"
	DISK=1 RUN=ending APPEND=ending=pass boot 0
	[[ ${lines[0]} = *",queue-size=128,"* ]]
	grep -q '\[vda\] 196608 512-byte logical blocks' "$LOG"
	mkdir empty
	ln -s "$BUILD"/* empty/
	rm empty/guest
	mkdir empty/guest
	ln -s "$BUILD/guest/initrd.cpio" empty/guest/
	BUILD_DIR=empty DISK=1 ending pass 125
	[[ $output = *"way out: scripts/build-disk"* ]]
}

@test "boot: another initramfs is used as it is, with APPEND word for word" {
	mkdir -p root/{bin,proc}
	cp "$(command -v busybox)" root/bin/busybox
	cat >root/init <<-'EOF'
		#!/bin/busybox sh
		/bin/busybox mount -t proc proc /proc
		/bin/busybox echo "files: $(/bin/busybox ls / | /bin/busybox xargs)"
		/bin/busybox echo "line: $(/bin/busybox cat /proc/cmdline)"
		/bin/busybox sleep 1
		/bin/busybox poweroff -f
		/bin/busybox sleep 100
	EOF
	chmod +x root/init
	(cd root && find . | cpio --create --format=newc --quiet >../foreign.cpio)
	INITRD=foreign.cpio APPEND='foo="a b"  bar' boot 0
	[[ $output = *"line: "*'foo="a b"  bar'* ]]
	[[ $output != *"/modules"* ]]
	grep -q '^files: bin dev init proc root' <(tr -d '\r' <"$LOG")
}

@test "boot: results are KTAP that the kernel's parser reads" {
	parser=$BUILD/linux/tools/testing/kunit/kunit.py
	[ -f "$parser" ] || skip "no kernel tree (make tree)"
	RUN=topology,machine boot 0
	run -0 python3 "$parser" parse "$RESULTS"
	[[ $output = *"passed"* ]]
	RUN=topology APPEND=expect.nodes=77 boot 1
	run -1 python3 "$parser" parse "$RESULTS"
	[[ $output = *"nodes is 2, expected 77"* ]]
}

@test "boot: with ICOUNT=1 equal boots are equal to the instruction" {
	ICOUNT=1 RUN=ending APPEND=ending=pass boot 0
	cp "$LOG" first
	ICOUNT=1 RUN=ending APPEND=ending=pass boot 0
	cmp first "$LOG"
}

@test "topologies: each is the machine that it promises" {
	for TOPO in $(cd "$ROOT/topologies" && echo *); do
		export TOPO
		RUN=topology APPEND=loglevel=5 boot 0
		# All of the keys, not none of them.
		[ "$(grep -c '^  ok ' "$RESULTS")" = \
			"$(sed -n 's/^# expect: //p' "$ROOT/topologies/$TOPO" | wc -w)" ]
	done
}

@test "guest: made from nothing while the caller holds many files open" {
	mkdir -p "$BATS_TEST_TMPDIR/build"
	ln -s "$BUILD/linux" "$BUILD/selftests" "$BATS_TEST_TMPDIR/build/"
	BUILD_DIR=$BATS_TEST_TMPDIR/build run -0 "$ROOT/scripts/build-guest" \
		5</dev/null 6</dev/null 7</dev/null 8</dev/null
	[ -s "$BATS_TEST_TMPDIR/build/guest/initrd.cpio" ]
}
