# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# TAP for the guest's tests, which init copies to console and results.

set -euo pipefail
tap_number=0
tap_failed=0

# result STATUS NAME: one test; what it has to say was printed before, with "# ".
result() {
	tap_number=$((tap_number + 1))
	if [ "$1" = 0 ]; then
		echo "ok $tap_number $2"
	else
		echo "not ok $tap_number $2"
		tap_failed=1
	fi
}

# check NAME COMMAND…: the command's status is the result.
check() {
	local name=$1 status=0
	shift
	"$@" || status=$?
	result $status "$name"
}

skip() {
	tap_number=$((tap_number + 1))
	echo "ok $tap_number $1 # SKIP $2"
}

remark() { echo "# $*"; }

finish() {
	echo "1..$tap_number"
	exit $tap_failed
}

echo "TAP version 13"
