# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What every script here shares: where things are, and how to speak to a person.
# Source it first; it turns on strict mode.

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD=$(realpath -m "${BUILD_DIR:-$ROOT/build}")
JOBS=${JOBS:-$(nproc)}
# One language for sort, tools' messages and what the checks parse.
export LC_ALL=C.UTF-8
# shellcheck disable=SC2034 # used by the scripts that source this file
readonly ROOT BUILD JOBS

# say, warn: progress and remarks go to stderr; stdout is for results that a
# script may capture.
say()  { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
warn() { printf '%s: warning: %s\n' "${0##*/}" "$*" >&2; }

# die MESSAGE [WAY-OUT]: one line that says what is wrong, one that names the
# way out.
die() {
	printf '%s: error: %s\n' "${0##*/}" "$1" >&2
	[ $# -lt 2 ] || printf '%s: way out: %s\n' "${0##*/}" "$2" >&2
	exit 1
}

# need_space GB [DIR]: what is to be made in DIR takes GB altogether. Better one line
# now than a build that ends in the middle.
need_space() {
	local dir=${2:-$BUILD} free
	mkdir -p "$dir"
	free=$(($(df --output=avail -B1M "$dir" | tail -n 1) + $(du -s -B1M "$dir" | cut -f 1)))
	[ "$free" -ge $(($1 * 1024)) ] ||
		die "$dir has $((free / 1024)) GB, needed are $1" "make room, or name another place: BUILD_DIR=DIR"
}
