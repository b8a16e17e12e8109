#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
# The plugin cachelines counts what two threads of tests/guest/ping_pong.c are
# known to pass to each other, and this test sees when it does not.

setup_file() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	BUILD=${BUILD_DIR:-$ROOT/build}
	local kernel
	for kernel in series base; do
		[ ! -f "$BUILD/$kernel/System.map" ] || break
		kernel=
	done
	KERNEL=${KERNEL:-$kernel}
	export ROOT BUILD KERNEL
	[ -z "$KERNEL" ] || "$ROOT/scripts/build-guest"
}

setup() {
	case $BATS_TEST_DESCRIPTION in
	*"known transfers"*|*"this test sees"*)
		[ -n "$KERNEL" ] || skip "no kernel is built (make kernel or make kernel-base)" ;;
	esac
	# The plugin of others stays as it is.
	mkdir -p "$BATS_TEST_TMPDIR/build"
	cp -r "$ROOT/bench/plugin" "$BATS_TEST_TMPDIR/source"
}

# change FILE SED: break the copy of the sources.
change() {
	sed -i.good "$2" "$BATS_TEST_TMPDIR/source/$1"
	! cmp -s "$BATS_TEST_TMPDIR/source/$1"{,.good}
}

# ping_pong THREADS: what the plugin counts of the program's own transfers: of
# each kind the operations, then fetched, owned and upgraded lines.
ping_pong() {
	BUILD_DIR=$BATS_TEST_TMPDIR/build BENCH_PLUGIN=$BATS_TEST_TMPDIR/source "$ROOT/scripts/build-plugin"
	local plugin=$BATS_TEST_TMPDIR/build/plugin/cachelines.so out=$BATS_TEST_TMPDIR/lines try
	for try in {1..6}; do
		TOPO=2n THREADS=$1 RUN=ping_pong LOG=$BATS_TEST_TMPDIR/log RESULTS=$BATS_TEST_TMPDIR/results \
			QEMU_ARGS="-plugin $plugin,map=$BUILD/$KERNEL/System.map,out=$out" \
			"$ROOT/scripts/boot" >"$BATS_TEST_TMPDIR/out" 2>&1 && break
		# The one fault that is QEMU's, while the kernel boots: scripts/boot.
		if [ "$try" = 6 ] || ! grep -q 'Oops: int3: 0000' "$BATS_TEST_TMPDIR/log" ||
			grep -q 'Run /init as init process' "$BATS_TEST_TMPDIR/log"; then
			tail -n 20 "$BATS_TEST_TMPDIR/out" >&2
			return 1
		fi
	done
	awk '$3 == "operations" { count[$2] = $4; lines[$2] = "0 0 0" }
	     $3 == "[user]" { lines[$2] = $4 " " $5 " " $6 }
	     END { for (kind = 1; kind < 8; kind++) print kind, count[kind], lines[kind] }' "$out"
}

# 100 rounds of the table in ping_pong.c.
known() {
	cat <<-'TABLE'
	1 200 200 0 200
	2 200 0 200 0
	3 200 0 200 0
	4 200 0 200 0
	5 200 0 400 0
	6 200 0 0 0
	7 200 100 0 100
	TABLE
}
# wrong KINDS: those at least come out differently.
wrong() {
	local got kind
	got=$(ping_pong single)
	for kind in $1; do
		! grep -qxF "$(known | sed -n "${kind}p")" <<<"$got" ||
			{ echo "a broken model gives what is right:"; echo "$got"; return 1; }
	done
}

@test "cachelines: known transfers, all CPUs in one thread" {
	diff <(known) <(ping_pong single)
}

@test "cachelines: known transfers, a thread for each CPU" {
	diff <(known) <(ping_pong multi)
}

@test "cachelines: known transfers, instructions counted" {
	diff <(known) <(ICOUNT=1 ping_pong single)
}

@test "cachelines: this test sees a model that takes locked operations apart" {
	change cachelines.c 's/insn->locked || //'
	wrong '2 3'
}

@test "cachelines: this test sees a model whose stores leave the others' copies" {
	change lines.h '/memset(line->copies, 0/d; s/line->copies\[cpu \/ 64\] = bit/line->copies[cpu \/ 64] |= bit/'
	wrong '1 4 7'
}

@test "cachelines: this test sees a model of lines that are too long or too short" {
	change lines.h 's/LINE_BITS	6/LINE_BITS	7/'
	wrong '6'
	cp "$ROOT/bench/plugin/lines.h" "$BATS_TEST_TMPDIR/source/"
	change lines.h 's/LINE_BITS	6/LINE_BITS	3/'
	wrong '4'
}

@test "cachelines: without its arguments QEMU does not start" {
	BUILD_DIR=$BATS_TEST_TMPDIR/build "$ROOT/scripts/build-plugin"
	run qemu-system-x86_64 -display none -plugin "$BATS_TEST_TMPDIR/build/plugin/cachelines.so"
	[ "$status" != 0 ]
	[[ $output = *"map=System.map,out=FILE are needed"* ]]
}

@test "cachelines: counts become figures of a pass, an allocation and a fault" {
	printf '%s\n' '1 1 operations 8' '1 1 f 1 0 3' \
		'2 1 operations 8' '2 1 g 6 0 0' '2 1 h 0 0 6' '2 2 operations 2' '2 2 k 0 4 0' \
		'3 3 operations 100' '3 3 m 150 0 1' >"$BATS_TEST_TMPDIR/lines"
	run "$ROOT/bench/lines" nodes=2/threads=4 "$BATS_TEST_TMPDIR/lines" <<<$'alone\nread\nfault'
	[ "$status" = 0 ]
	diff - <(echo "$output") <<-'FIGURES'
	alone/nodes=2/threads=4 0.5 transfers
	alone/f/fetch/nodes=2/threads=4 0.125 transfers/symbol
	alone/f/upgrade/nodes=2/threads=4 0.375 transfers/symbol
	read-reader/nodes=2/threads=4 2 transfers
	read-reader/k/own/nodes=2/threads=4 2 transfers/symbol
	read-allocators/nodes=2/threads=4 6 transfers
	read-allocators/g/fetch/nodes=2/threads=4 3 transfers/symbol
	read-allocators/h/upgrade/nodes=2/threads=4 3 transfers/symbol
	fault/nodes=2/threads=4 1.51 transfers
	fault/m/fetch/nodes=2/threads=4 1.5 transfers/symbol
	FIGURES
	run "$ROOT/bench/lines" nodes=2/threads=4 "$BATS_TEST_TMPDIR/lines" <<<alone
	[ "$status" = 1 ]
	[[ $output = *"1 names for 3 windows"* ]]
}
