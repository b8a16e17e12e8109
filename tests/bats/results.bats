#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
# shellcheck disable=SC2016,SC2030,SC2031 # back quotes of the page; each test is a subshell
# docs/results.md is made from bench/results.json, and what is quoted is in it.

setup() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	CO=$BATS_TEST_TMPDIR/checkout
	mkdir -p "$CO"/{scripts,bench,docs,build/results}
	cp "$ROOT"/scripts/{results,lib.sh} "$CO/scripts/"
	cp "$ROOT"/bench/{page,figures.py} "$CO/bench/"
	unset BUILD_DIR
	{
		echo '{"cases": {"one": {"title": "One", "base": "b", "series": "s", "compiler": "cc", "emulator": "qemu"}}, "figures": ['
		figure 'cost/order=0' 12 8,
		figure 'cost/order=1' 14 7,
		figure 'only-base' 5 null,
		# 100 + 10 c + 3 n + 2 n c; the series has no n.
		for machine in 1x1 1x4 2x4 4x4 8x16 2x64 8x64; do
			n=${machine%x*} c=${machine#*x}
			figure "read/nodes=$n/cpus=$c" $((100 + 10 * c + 3 * n + 2 * n * c)) $((100 + 10 * c)),
		done
		figure 'odd/nodes=1/cpus=1' 1 1
		echo ']}'
	} >"$CO/bench/results.json"
	: >"$CO/bench/quotes"
}

figure() { # NAME BASE SERIES[,]
	local series=${3%,} ratio=null
	[ "$series" = null ] || ratio=0.5
	printf '{"case": "one", "figure": "%s", "unit": "instructions", "base": %s, "series": %s, "ratio": %s, "spread": 0, "boots": 2, "command": "make bench-one"}%s\n' \
		"$1" "$2" "$series" "$ratio" "$([ "$1" = odd/nodes=1/cpus=1 ] || echo ,)"
}
# page LINE…: what becomes of a template.
page() {
	printf '%s\n' "$@" >"$CO/bench/results.md.in"
	"$CO/scripts/results" >"$BATS_TEST_TMPDIR/out" 2>&1 || { cat "$BATS_TEST_TMPDIR/out"; return 1; }
	cat "$CO/docs/results.md"
}

@test "results: figures and sums of them, in the text" {
	[ "$(page 'It is {{base:one/cost/order=0}}, less {{base:one/cost/order=0 - series:one/cost/order=0}}.')" = 'It is 12, less 4.' ]
	[ "$(page '{{100 * series:one/cost/order=1 / base:one/cost/order=1 - 100;+.0f}} %')" = '-50 %' ]
	[ "$(page '{{1000 * base:one/cost/order=0}}')" = '12,000' ]
}

@test "results: what was not measured is said" {
	[ "$(page '{{base:one/gone}} {{series:one/only-base}}')" = 'not measured not measured' ]
	[[ "$(page '{{table two}}' '{{end}}')" = *'make bench-two'* ]]
	[[ "$(page '{{table one}}' 'x | gone' '{{end}}')" = *'| x | not measured |'* ]]
}

@test "results: a table has a row for each figure that a * stands for, and its command" {
	run page '{{table one}}' 'order <order> | cost/order=*' '{{end}}'
	[[ $output = *'| order 0 | 12 | 8 | 0.500 | 0 of 2 |'* ]]
	[[ $output = *'| order 1 | 14 | 7 | 0.500 | 0 of 2 |'* ]]
	[[ $output = *'`make bench-one`'* ]]
}

@test "results: a topic that is not measured says so, and one that is does not" {
	[ "$(page '{{when two}}' here '{{else}}' 'not yet' '{{end}}')" = 'not yet' ]
	[ "$(page '{{when one}}' here '{{else}}' 'not yet' '{{end}}')" = here ]
	[ "$(page '{{when one}}' a '{{when two}}' b '{{else}}' c '{{end}}' x '{{end}}' y)" = $'a\nc\nx\ny' ]
}

@test "results: a model finds the terms that the costs are made of" {
	run page '{{growth one 512,64}}' 'a read | read | 1 c n n*c | 1 c' '{{end}}'
	[[ $output = *'| a read | base | 100 + 10 c + 3.00 n + 2.00 nc | 0.0% | 0.0% | 70,900 |'* ]] || { echo "$output"; false; }
	[[ $output = *'| a read | series | 100 + 10 c | 0.0% | 0.0% | 5,220 |'* ]]
}

@test "results: a model that is far off, or of too few machines, is none" {
	run page '{{growth one 512,64}}' 'a read | read | 1 n | 1 c' 'odd | odd | 1 c | 1 c' '{{end}}'
	[[ $output = *'| a read | base | none of the form 1 + n |'* ]]
	[[ $output = *'| odd | base | too few machines measured |'* ]]
}

@test "results --check: a page that somebody has edited is found" {
	page 'It is {{base:one/cost/order=0}}.' >/dev/null
	run "$CO/scripts/results" --check
	[ "$status" = 0 ]
	echo 'It is 11.' >"$CO/docs/results.md"
	run "$CO/scripts/results" --check
	[ "$status" = 1 ]
	[[ $output = *'-It is 11.'*'+It is 12.'*'make results'* ]]
}

@test "results: a quote that is not as measured is found, white space aside" {
	printf 'The cost is\n  12 ->   8.\n' >"$CO/README.md"
	echo 'README.md: cost is {{base:one/cost/order=0}} -> {{series:one/cost/order=0}}.' >"$CO/bench/quotes"
	page x >/dev/null
	sed -i 's/8/9/' "$CO/README.md"
	run "$CO/scripts/results" --check
	[ "$status" = 1 ]
	[[ $output = *'README.md does not say: cost is 12 -> 8.'* ]]
}

@test "results: a quote of what only a full run has is passed over" {
	echo 'It was 12.' >"$CO/README.md"
	printf '%s\n' 'full README.md: It was {{base:one/gone}}.' 'full README.md: It was {{base:one/cost/order=0}}.' >"$CO/bench/quotes"
	run page x
	[ "$status" = 0 ]
	grep -q '1 quotes, 0 of them not as measured; 1 need a full run' "$BATS_TEST_TMPDIR/out"
	echo 'README.md: It was {{base:one/gone}}.' >"$CO/bench/quotes"
	run "$CO/scripts/results" --check
	[ "$status" = 1 ]
	[[ $output = *'does not say: It was not measured.'* ]]
}

@test "results --take: the figures of the last bench become the committed ones" {
	sed 's/12/13/' "$CO/bench/results.json" >"$CO/build/results/bench.json"
	echo '{{base:one/cost/order=0}}' >"$CO/bench/results.md.in"
	"$CO/scripts/results" --take
	[ "$(cat "$CO/docs/results.md")" = 13 ]
	cmp "$CO/bench/results.json" "$CO/build/results/bench.json"
}
