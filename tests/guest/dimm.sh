# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Memory that goes offline and comes back, and the DIMM of the machine 'hotplug'.

offline() { [ "$(cat "$1/state")" = offline ] || echo offline >"$1/state"; } 2>/dev/null
online()  { [ "$(cat "$1/state")" = online ] || echo online >"$1/state"; }

# wait_for SECONDS COMMAND…: until it succeeds.
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		if [ "$SECONDS" -ge "$end" ]; then
			remark "waited in vain for: $*"
			return 1
		fi
		sleep 0.02
	done
}

# took STEP COMMAND…: adds up, in microseconds, how long each step takes.
declare -A spent=()
took() {
	local step=$1 start=${EPOCHREALTIME/.} status=0
	shift
	"$@" || status=$?
	spent[$step]=$((${spent[$step]:-0} + ${EPOCHREALTIME/.} - start))
	return "$status"
}

# The memory blocks of node 2.
blocks() { echo /sys/devices/system/node/node2/memory[0-9]*; }
gone() { [ ! -e /sys/devices/system/node/node2 ]; }
# QEMU refuses until the guest's firmware has let the old DIMM go.
plug() {
	local try
	printf 'device_add pc-dimm,id=dimm2,memdev=m2,node=2\r' >/dev/ttyS2
	for ((try = 0; try < 25; try++)); do
		! [ -e /sys/devices/system/node/node2 ] || return 0
		sleep 0.02
	done
	return 1
}
all_online() {
	local block
	for block in $(blocks); do
		[ "$(cat "$block/online")" = 1 ] || return
	done
}

# cycle_dimm TIMES: out with all of node 2, and in again through QEMU's monitor, which
# is at the other end of ttyS2.
cycle_dimm() {
	local cycle block dimm
	stty -F /dev/ttyS2 raw -echo
	for ((cycle = 0; cycle < $1; cycle++)); do
		for block in $(blocks); do
			took offline wait_for 60 offline "$block" || return
		done
		dimm=$(grep -l '^15$' /sys/bus/acpi/devices/PNP0C80:*/status) || return
		took eject echo 1 >"${dimm%/status}/eject"
		took eject wait_for 60 gone || return
		took plug wait_for 60 plug || return
		took online wait_for 60 all_online || return
	done
	remark "$1 times node 2 went and came back; ms on average:" \
		"$(for step in "${!spent[@]}"; do printf ' %s %d' "$step" $((spent[$step] / 1000 / $1)); done)"
}
