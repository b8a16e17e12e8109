#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
# The runner of the checks: what it counts, and that nothing is lost or hidden.

setup() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	local linux=${BUILD_DIR:-$ROOT/build}/linux
	export BUILD_DIR=$BATS_TEST_TMPDIR/build KNOWN_FAILURES=$BATS_TEST_TMPDIR/known
	checks=$BATS_TEST_TMPDIR/checks
	mkdir -p "$checks" "$BUILD_DIR"
	# The parser of KTAP is the kernel's.
	ln -s "$linux" "$BUILD_DIR/linux"
}

# check NN-NAME SCRIPT: a dummy check.
check() {
	printf '#!/bin/bash\n# SPDX\n# what it is for\n# seconds: 1\n%s\n' "$2" > "$checks/$1"
	chmod +x "$checks/$1"
}
run_checks() { run "$ROOT/scripts/check" --no-prepare --dir "$checks" "$@"; }
last_line() { [ "${lines[-1]}" = "$1" ] || { echo "$output"; return 1; }; }
known() { printf '%s\t%s\n' "$@" > "$KNOWN_FAILURES"; }
ktap() { printf '{ echo TAP version 13; echo 1..%d; printf "%%s\\n" %s; } > $CHECK_RESULTS' "$1" "$2"; }

@test "all pass: exit 0 and the count" {
	check 10-one 'echo detail of one'
	check 20-two 'exit 0'
	run_checks
	[ "$status" -eq 0 ]
	last_line "2 passed, 0 failed, 0 skipped"
	[[ $output =~ one\ +ok\ +[0-9]+\ +detail\ of\ one ]]
}

@test "a failing check: exit 1, its output, and how to run it alone" {
	check 10-good 'exit 0'
	check 20-bad 'echo the reason; exit 3'
	check 30-after 'exit 0'
	run_checks
	[ "$status" -eq 1 ]
	last_line "2 passed, 1 failed, 0 skipped"
	[[ $output = *"    the reason"* ]]
	[[ $output = *"scripts/check bad"* ]]
}

@test "a check that dies by a signal has failed" {
	check 10-killed 'kill -KILL $$'
	run_checks
	[ "$status" -eq 1 ]
	last_line "0 passed, 1 failed, 0 skipped"
}

@test "exit status 77 is a skip, with its reason in the table" {
	check 10-skip 'echo no such tool; exit 77'
	run_checks
	[ "$status" -eq 0 ]
	last_line "0 passed, 0 failed, 1 skipped"
	[[ $output =~ skip\ +skipped\ +[0-9]+\ +no\ such\ tool ]]
}

@test "results of a check count each" {
	check 10-tap "$(ktap 3 '"ok 1 a" "not ok 2 b" "ok 3 c # SKIP no need"'); exit 1"
	run_checks
	[ "$status" -eq 1 ]
	last_line "1 passed, 1 failed, 1 skipped"
	[[ $output = *"failed: tap/b"* ]]
}

@test "a check that fails although its results pass has failed" {
	check 10-tap "$(ktap 1 '"ok 1 a"'); exit 1"
	run_checks
	[ "$status" -eq 1 ]
	last_line "1 passed, 1 failed, 0 skipped"
}

@test "a failing result fails the run although the check ends with 0" {
	check 10-tap "$(ktap 1 '"not ok 1 a"')"
	run_checks
	[ "$status" -eq 1 ]
	last_line "0 passed, 1 failed, 0 skipped"
}

@test "results that break off before their plan are a failure" {
	check 10-tap "$(ktap 3 '"ok 1 a"')"
	run_checks
	[ "$status" -eq 1 ]
	[[ ${lines[-1]} =~ ,\ [1-9][0-9]*\ failed ]]
}

@test "results whose numbers leave some out: these fail, the others count" {
	check 10-tap "$(ktap 4 '"ok 1 a" "not ok 2 setup_file failed" "ok 4 d"')"
	run_checks
	[ "$status" -eq 1 ]
	last_line "2 passed, 2 failed, 0 skipped"
	[[ $output = *"failed: tap/setup_file failed"* ]]
}

@test "the names of what failed stand above the last line, and in the summary" {
	check 10-tap "$(ktap 2 '"not ok 1 a" "not ok 2 b"')"
	check 20-good 'exit 0'
	check 30-bad 'exit 1'
	run_checks
	[ "${lines[*]: -4:3}" = "failed: tap/a failed: tap/b failed: bad" ]
	diff <(printf '%s\n' "${lines[@]: -4}") "$BUILD_DIR/logs/check/summary"
}

@test "many failures: the first ten names, and the count of the others" {
	check 10-tap "$(ktap 13 '"not ok "{1..13}" x"')"
	run_checks
	[ "${lines[-2]}" = "failed: and 3 more" ]
	[ "$(grep -c '^failed: tap/x$' "$BUILD_DIR/logs/check/summary")" -eq 10 ]
}

@test "results that nobody can read are a failure" {
	check 10-tap 'echo no tap at all > $CHECK_RESULTS'
	run_checks
	[ "$status" -eq 1 ]
	last_line "0 passed, 1 failed, 0 skipped"
}

@test "nested results are named by their path" {
	check 10-tap 'printf "%s\n" "KTAP version 1" "1..1" "  KTAP version 1" "  1..2" "  ok 1 x" "  not ok 2 y" "not ok 1 top" > $CHECK_RESULTS'
	run_checks
	last_line "1 passed, 1 failed, 0 skipped"
	[[ $output = *"failed: tap/top/y"* ]]
}

@test "a known failure is skipped, and said" {
	known tap/b "nobody knows why"
	check 10-tap "$(ktap 2 '"ok 1 a" "not ok 2 b"'); exit 1"
	run_checks
	[ "$status" -eq 0 ]
	last_line "1 passed, 0 failed, 1 skipped"
	[[ $output = *"known failure: nobody knows why"* ]]
}

@test "a known failure excuses nothing else in the check" {
	known tap/b "nobody knows why"
	check 10-tap "$(ktap 2 '"not ok 1 a" "not ok 2 b"'); exit 1"
	run_checks
	[ "$status" -eq 1 ]
	last_line "0 passed, 1 failed, 1 skipped"
}

@test "a known failure that passes is a failure" {
	known tap/a "once it failed"
	check 10-tap "$(ktap 1 '"ok 1 a"')"
	run_checks
	[ "$status" -eq 1 ]
	last_line "0 passed, 1 failed, 0 skipped"
}

@test "a failure of the base has to fail on the base" {
	known tap/a "base: counts twice"
	check 10-tap "$(ktap 1 '"not ok 1 a"'); exit 1"
	run_checks
	[ "$status" -eq 0 ]
	last_line "0 passed, 0 failed, 1 skipped"
	check 10-tap "if [ \"\${KERNEL:-}\" = base ]; then $(ktap 1 '"ok 1 a"'); else $(ktap 1 '"not ok 1 a"'); exit 1; fi"
	run_checks
	[ "$status" -eq 1 ]
	last_line "0 passed, 1 failed, 0 skipped"
}

@test "some checks by name and glob, and no such check" {
	check 10-one 'exit 0'
	check 20-two 'exit 0'
	check 30-three 'exit 1'
	run_checks one 't[w]o'
	[ "$status" -eq 0 ]
	last_line "2 passed, 0 failed, 0 skipped"
	run_checks four
	[ "$status" -ne 0 ]
	[[ $output = *"scripts/check --list"* ]]
}

@test "--list names each check with its time and runs none" {
	check 10-one "touch $BATS_TEST_TMPDIR/ran"
	run_checks --list
	[ "$status" -eq 0 ]
	[[ $output =~ one\ +1\ s\ +what\ it\ is\ for ]]
	[ ! -e "$BATS_TEST_TMPDIR/ran" ]
}

@test "an interrupt ends the check and all that it started" {
	check 10-long "sleep 1000 & echo \$! > $BATS_TEST_TMPDIR/pid; wait"
	"$ROOT/scripts/check" --no-prepare --dir "$checks" 3>&- &
	runner=$!
	for _ in {1..100}; do [ ! -s "$BATS_TEST_TMPDIR/pid" ] || break; sleep 0.1; done
	kill -TERM $runner
	rc=0
	wait $runner || rc=$?
	[ $rc -eq 130 ]
	# It has got its signal; that it is gone may take a moment.
	for _ in {1..100}; do
		kill -0 "$(cat "$BATS_TEST_TMPDIR/pid")" 2>/dev/null || return 0
		sleep 0.1
	done
	false
}

@test "a second run in the same build directory is refused" {
	check 10-one 'exit 0'
	mkdir -p "$BUILD_DIR/check"
	exec 7> "$BUILD_DIR/check/.lock"
	flock 7
	run_checks
	exec 7>&-
	[ "$status" -ne 0 ]
	[[ $output = *"another run"* ]]
}

@test "every check says what it is for and what it takes" {
	for file in "$ROOT"/scripts/checks/{,full/}[0-9]*; do
		[ -x "$file" ]
		sed -n 3p "$file" | grep -q '^# [A-Za-z]'
		grep -qE '^# seconds: [0-9]+$' "$file"
	done
}

# What a guest may send: plans at the end, a skip after the version line, a test that
# breaks off, and one without a version line.
guest_like() {
	cat <<-'STREAM'
	KTAP version 1
	1..2
	  KTAP version 1
	  1..5
	    TAP version 13
	    ok 1 a
	    ok 2 b
	    1..2
	  ok 1 late-plan
	    TAP version 13
	  ok 2 none # SKIP not here
	    TAP version 13
	    1..3
	    ok 1 c
	  not ok 3 broke-off # exit status 1
	    TAP version 13
	    ok 1 d
	  not ok 4 no-plan # exit status 1
	    # no version line
	    ok 1 e
	    1..1
	  ok 5 no-version
	not ok 1 2n
	ok 2 2n-boot
	STREAM
}

@test "what guests send keeps its names, whatever broke off" {
	guest_like > "$BATS_TEST_TMPDIR/stream"
	check 10-guest "cat $BATS_TEST_TMPDIR/stream > \$CHECK_RESULTS; exit 1"
	run_checks
	[ "$status" -eq 1 ]
	run cat "$BUILD_DIR/logs/check/10-guest.ktap.outcomes"
	for line in 'pass	guest/2n/late-plan/b' 'skip	guest/2n/none' 'pass	guest/2n/broke-off/c' \
		'pass	guest/2n/no-plan/d' 'pass	guest/2n/no-version/e' 'pass	guest/2n-boot'; do
		grep -qxF "$line" <<< "$output" || { echo "no $line in: $output"; return 1; }
	done
	grep -q '^fail	guest/2n/broke-off' <<< "$output"
	grep -q '^fail	guest/2n/no-plan' <<< "$output"
	[ "$(grep -c ^fail <<< "$output")" -le 4 ]
}

# junit NAME: of each test case in that check's report: outcome, path and log.
junit() {
	python3 - "$BUILD_DIR/results/junit/$1.xml" <<-'PYTHON'
	import sys, xml.etree.ElementTree as xml
	def cases(suite, path):
	    for part in suite:
	        name = [*path, part.get('name')]
	        if part.tag == 'testsuite':
	            cases(part, name)
	        elif part.tag == 'testcase':
	            tags = [child.tag for child in part if child.tag != 'system-out']
	            print(*tags or ['passed'], '/'.join(name), part.findtext('system-out', ''))
	root = xml.parse(sys.argv[1]).getroot()
	print(*(root.get(key) for key in ('tests', 'failures', 'skipped', 'errors')))
	cases(root, [])
	PYTHON
}
junit_is() {
	diff <(printf '%s\n' "${@:2}") <(junit "$1" | tr -s ' ' | sed 's/ $//')
}

@test "JUnit: what each check reports, nested as it was" {
	check 10-flat "$(ktap 3 '"ok 1 a" "not ok 2 b" "ok 3 c # SKIP no need"'); exit 1"
	check 20-nested 'printf "%s\n" "KTAP version 1" "1..1" "  KTAP version 1" "  1..2" "  ok 1 x" "  # why" "  not ok 2 y" "not ok 1 top" > $CHECK_RESULTS; exit 1'
	run_checks
	junit_is flat '3 1 1 0' 'passed a' 'failure b' 'skipped c'
	junit_is nested '2 1 0 0' 'passed top/x' 'failure top/y # why'
}

@test "JUnit: a check without results is one test, with its last line" {
	check 10-good 'echo all is well'
	check 20-bad 'echo the reason; exit 1'
	check 30-none 'echo no such tool; exit 77'
	run_checks
	junit_is good '1 0 0 0' 'passed good # all is well'
	junit_is bad '1 1 0 0' 'failure bad # the reason'
	junit_is none '1 0 1 0' 'skipped none # no such tool'
}

@test "JUnit: a check that fails although its results pass shows it" {
	check 10-tap "$(ktap 1 '"ok 1 a"'); exit 1"
	run_checks
	[ "$(junit tap | grep -c '^failure tap')" = 1 ]
	[ "$(junit tap | grep -c '^passed results/a')" = 1 ]
}

@test "JUnit: results that break off, that nobody can read, or in colour" {
	guest_like > "$BATS_TEST_TMPDIR/stream"
	check 10-guest "cat $BATS_TEST_TMPDIR/stream > \$CHECK_RESULTS; exit 1"
	check 20-none 'echo no tap at all > $CHECK_RESULTS'
	check 30-colour "$(ktap 2 "\$'# \\e[1m<b>&\\e[0m' "'"ok 1 a" "not ok 2 b"')"
	run_checks
	[ "$status" = 1 ]
	[ "$(junit guest | grep -c '^passed 2n/late-plan/b')" = 1 ]
	[[ "$(junit none)" != *" 0 0 0"* ]]
	junit_is colour '2 1 0 0' 'passed a # ?[1m<b>&?[0m' 'failure b'
}

@test "JUnit: the report of a run before is gone" {
	check 10-one "$(ktap 1 '"ok 1 a"')"
	run_checks
	rm "$checks/10-one"
	check 10-other 'exit 0'
	run_checks
	[ "$(cd "$BUILD_DIR/results/junit" && echo *)" = other.xml ]
}

# A reader that leaves early ends the writer with SIGPIPE, and pipefail makes
# that the pipe's status: true becomes false, now and then.
@test "no script reads from a pipe with a command that leaves early" {
	run grep -rnE '[^|]\| *(grep -[a-zA-Z]*q|head )' "$BATS_TEST_DIRNAME/../../scripts" \
		"$BATS_TEST_DIRNAME/../../bench" "$BATS_TEST_DIRNAME/../../guest/init"
	[ "$status" = 1 ] || { echo "$output"; false; }
}

@test "too little disk for what is to be made: one line, and the way out" {
	mkdir -p "$BATS_TEST_TMPDIR/bin"
	printf '#!/bin/sh\necho Avail\necho 100\n' > "$BATS_TEST_TMPDIR/bin/df"
	chmod +x "$BATS_TEST_TMPDIR/bin/df"
	PATH=$BATS_TEST_TMPDIR/bin:$PATH run bash -c ". '$ROOT/scripts/lib.sh'; need_space 9; echo went on"
	[ "$status" -eq 1 ]
	[[ $output = *"$BUILD_DIR has 0 GB, needed are 9"*"way out: make room"* ]]
	[[ $output != *"went on"* ]]
	# What stands there already is part of it.
	printf '#!/bin/sh\nprintf "9300\\t%%s\\n" "$2"\n' > "$BATS_TEST_TMPDIR/bin/du"
	chmod +x "$BATS_TEST_TMPDIR/bin/du"
	PATH=$BATS_TEST_TMPDIR/bin:$PATH run bash -c ". '$ROOT/scripts/lib.sh'; need_space 9; echo went on"
	[ "$status" -eq 0 ]
	[ "$output" = "went on" ]
}
