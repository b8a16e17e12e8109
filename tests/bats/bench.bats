#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
# shellcheck disable=SC2016,SC2030,SC2031 # cases expand later; each test is a subshell
# scripts/bench with cases that measure nothing; no kernel is needed.

setup() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	CO=$BATS_TEST_TMPDIR/checkout
	mkdir -p "$CO/scripts" "$CO/bench/cases"
	cp "$ROOT"/scripts/{bench,lib.sh} "$CO/scripts/"
	cp "$ROOT"/bench/{report,plot,topology,figures.py} "$CO/bench/"
	unset BUILD_DIR
	RESULTS=$CO/build/results
}

# case_file NAME COMMANDS: what measure does.
case_file() {
	cat >"$CO/bench/cases/$1" <<EOF
title='Case $1'
boots=2
steps=(small:1 large:1)
quick_steps=(small:1)
measure() { $2
}
EOF
}

bench() { "$CO/scripts/bench" "$@"; }
figure() { jq -c ".figures[] | select(.figure == \"$1\") | [.base, .series, .ratio, .spread, .boots]" "$RESULTS/bench.json"; }

PAIR='[ $1 = base ] && echo "cost/$2 200 instructions" || echo "cost/$2 150.5 instructions"'

@test "bench: base and series become a pair with ratio, spread, command and plot" {
	case_file one "$PAIR"
	run bench --no-build
	[ "$status" = 0 ]
	[ "$(figure cost/small)" = '[200,150.5,0.7525,0,2]' ]
	grep -q '^| cost/large *| instructions *| *200 | *150.5 | *0.752 | 0 in 2 boots | make bench-one |$' "$RESULTS/bench.md"
	grep -q '^2 of 2 figures in instructions are equal in all boots' "$RESULTS/bench.md"
	grep -q '<svg' "$RESULTS/one.svg"
}

@test "bench: a case names its panels, and nothing else of it is drawn" {
	case_file one 'echo "cost/nodes=1/cpus=$([ $2 = small ] && echo 1 || echo 4) 200 instructions"; echo "other/nodes=1/cpus=1 1 instructions"'
	echo "panels=(cost 'What it costs')" >>"$CO/bench/cases/one"
	bench --no-build
	grep -q 'What it costs' "$RESULTS/one-over-cpus.svg"
	grep -q 'base, 1 node<' "$RESULTS/one-over-cpus.svg"
	run grep other "$RESULTS/one-over-cpus.svg"
	[ "$status" = 1 ]
}

@test "bench: says how far it is" {
	case_file one "$PAIR"
	run bench --no-build
	[[ $output = *"1 of 8: one small, base, boot 1; about 1 min left"* ]]
}

@test "bench: boots that differ show in the spread" {
	case_file one 'echo x >>"$results/count"; echo "cost $(wc -l <"$results/count") instructions"'
	sed -i 's/^steps=.*/steps=(small:1)/' "$CO/bench/cases/one"
	run bench --no-build
	[ "$(figure cost)" = '[1,3,3,1,2]' ]
	grep -q '^0 of 1 figures in instructions are equal' "$RESULTS/bench.md"
}

@test "bench: a failing case is named and does not lose the others" {
	case_file bad 'echo reason >&2; false; echo "cost 1 instructions"'
	case_file good "$PAIR"
	run bench --no-build
	[ "$status" = 1 ]
	[[ $output = *"bad fails at small, base: reason"* ]]
	[[ $output = *"failed: bad"* ]]
	[ "$(figure cost/small)" = '[200,150.5,0.7525,0,2]' ]
	[ "$(figure cost)" = '' ]
}

@test "bench: a case without figures fails" {
	case_file empty ':'
	run bench --no-build
	[ "$status" = 1 ]
	[[ $output = *"no figures"* ]]
}

@test "bench: a case alone leaves the figures of the others" {
	case_file one "$PAIR"
	case_file two "${PAIR//cost/other}"
	bench --no-build one
	bench --no-build two
	[ -n "$(figure cost/small)" ]
	[ -n "$(figure other/small)" ]
}

@test "bench: an unknown case is refused with those there are" {
	case_file one "$PAIR"
	run bench --no-build three
	[ "$status" = 1 ]
	[[ $output = *"way out: one of: one"* ]]
}

@test "bench --quick: first steps, one boot, results of its own" {
	case_file one "$PAIR"
	run bench --no-build --quick
	[ "$status" = 0 ]
	[[ $output = *"1 of 2:"* ]]
	[ ! -e "$RESULTS/bench.json" ]
	RESULTS=$RESULTS/quick
	[ "$(figure cost/small)" = '[200,150.5,0.7525,0,1]' ]
	[ "$(figure cost/large)" = '' ]
}

@test "bench --compare: more than 1 % is named, less is not" {
	case_file one 'echo "cost 1000 instructions"'
	bench --no-build
	sed 's/1000/1010/' "$RESULTS/bench.json" >"$CO/same.json"
	sed 's/"series": 1000/"series": 900/' "$RESULTS/bench.json" >"$CO/moved.json"
	run bench --compare "$CO/same.json"
	[ "$status" = 0 ]
	[[ $output = *"0 moved"* ]]
	run bench --compare "$CO/moved.json"
	[ "$status" = 1 ]
	[[ $output = *"moved: series one/cost: 900 -> 1,000 (+11.1%)"* ]]
}

@test "bench --compare: without results the way out is named" {
	run bench --compare
	[ "$status" = 1 ]
	[[ $output = *"way out: make bench"* ]]
}

# claims BOUND…: hold them against the figures of case one.
claims() {
	printf '%s\n' "$@" >"$CO/bench/claims"
	bench --claims
}

@test "bench --claims: bounds hold or do not, for every figure that a * stands for" {
	case_file one "$PAIR"
	bench --no-build
	run claims 'series:one/cost/* <= base:one/cost/*' 'base:one/cost/small - series:one/cost/small <= 2 * 25'
	[ "$status" = 0 ]
	[[ $output = *"3 bounds hold, 0 do not"* ]]
	run claims 'base:one/cost/* <= series:one/cost/*'
	[ "$status" = 1 ]
	[[ $output = *"does not hold: base:one/cost/large <= series:one/cost/large   (200 <= 150.5)"* ]]
	[[ $output = *"0 bounds hold, 2 do not"* ]]
}

@test "bench --claims: a bound without figures fails; --quick passes over full ones" {
	case_file one "$PAIR"
	bench --no-build
	bench --no-build --quick
	run claims 'series:one/gone <= 1'
	[ "$status" = 1 ]
	[[ $output = *"not measured: series:one/gone"* ]]
	echo 'full series:one/cost/large <= 200' >"$CO/bench/claims"
	run bench --claims --quick
	[ "$status" = 0 ]
	[[ $output = *"1 need a full run"* ]]
}

@test "bench: topologies have the nodes and CPUs asked for" {
	run "$CO/bench/topology" 8 4
	[ "$(grep -c '^-numa node' <<<"$output")" = 8 ]
	[ "$(grep -c 'cpus=[0-9]*-[0-9]*,memdev' <<<"$output")" = 4 ]
	run "$CO/bench/topology" 2 4 64
	[[ $output = *"append: maxcpus=4"*"-smp 64,"*"nodeid=1,cpus=32-63,"* ]]
}
