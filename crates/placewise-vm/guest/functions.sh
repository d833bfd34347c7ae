# The phrases of which scenarios are made. Scripts run with `sh -eu`: what fails ends them.

scheduler_state=/sys/kernel/sched_ext/state
cgroups=/sys/fs/cgroup

# figure NAME VALUE: reports a figure.
figure() {
	echo "figure $1 $2"
	echo "$1 $2" >>/out/figures
}

# figures PREFIX COMMAND...: reports each line `NAME VALUE` that COMMAND prints as PREFIX.NAME.
figures() {
	figures_prefix=$1
	shift
	"$@" >/tmp/figures
	while read -r figures_name figures_value; do
		figure "$figures_prefix.$figures_name" "$figures_value"
	done </tmp/figures
}

# cpus_of_list: the CPUs of a list such as 0-2,8 on standard input, a line each.
cpus_of_list() {
	tr ',' '\n' | while IFS=- read -r first last; do seq "$first" "${last:-$first}"; done
}

# record NAME COMMAND...: traces COMMAND; the host audits it, and names its figures NAME.
record() {
	record_name=$1
	shift
	placewise record --output "/out/$record_name.txt.zst" -- "$@" </dev/null
}

# load_scheduler ARGUMENT...: returns when the kernel has handed its tasks to $scheduler_program.
scheduler_program=scx_placewise
load_scheduler() {
	$scheduler_program "$@" >/tmp/scheduler.log 2>&1 &
	scheduler=$!
	load_tries=0
	until [ "$(cat $scheduler_state)" = enabled ]; do
		load_tries=$((load_tries + 1))
		if [ $load_tries -gt 3000 ] || ! kill -0 $scheduler 2>/dev/null; then
			cat /tmp/scheduler.log
			return 1
		fi
		sleep 0.1
	done
}

# await_state STATE: returns when sched_ext is in STATE, at the latest in a minute.
await_state() {
	await_tries=0
	until [ "$(cat $scheduler_state)" = "$1" ]; do
		await_tries=$((await_tries + 1))
		[ $await_tries -le 600 ] || return 1
		sleep 0.1
	done
}

# unload_scheduler: as Ctrl-C does; reports the loader's exit status.
unload_scheduler() {
	kill -INT $scheduler
	unload_status=0
	wait $scheduler || unload_status=$?
	await_state disabled
	figure scheduler.status $unload_status
	cat /tmp/scheduler.log
}

# torture COMMAND...: COMMAND for 30 s, beside tasks on all CPUs whose beating must not stop, with
# whatever scheduler there is, which must still be there in the end. COMMAND and all that it starts
# has a cgroup of its own, $load, with a limit of processes, and ends with it.
load=$cgroups/torture/load
torture() {
	echo "torture: $1"
	torture_state=$(cat $scheduler_state)
	echo '+cpu +pids' >$cgroups/cgroup.subtree_control
	mkdir -p $cgroups/torture
	echo 512 >$cgroups/torture/pids.max
	echo '+cpu +pids' >$cgroups/torture/cgroup.subtree_control
	mkdir $load
	(
		echo 0 >$load/cgroup.procs
		"$@"
	) </dev/null >/tmp/torture.log 2>&1 &
	figures torture vm-guest heartbeat --seconds "${torture_seconds:-30}"
	tail -3 /tmp/torture.log
	echo 1 >$cgroups/torture/cgroup.kill
	wait $! || :
	for online in /sys/devices/system/cpu/cpu[1-9]*/online; do echo 1 >"$online"; done
	await_state "$torture_state" || {
		echo "sched_ext was $torture_state, and is $(cat $scheduler_state)"
		cat /tmp/scheduler.log
		return 1
	}
	torture_tries=0
	until rmdir $cgroups/torture/* $cgroups/torture 2>/dev/null || [ ! -e $cgroups/torture ]; do
		sleep 0.1
		torture_tries=$((torture_tries + 1))
		[ $torture_tries -le 300 ] || return 1
	done
}

# What to torture with.

hackbench_storm() {
	while :; do hackbench --pipe --groups 4 --fds 8 --loops 100; done
}

stress_with_changing_affinities() {
	stress-ng --affinity 4 --cpu 4 --switch 4 --fork 2 --pipe 4 --timeout 1h
}

hotplug_cpus() {
	while :; do
		for online in /sys/devices/system/cpu/cpu[1-9]*/online; do
			echo 0 >"$online"
			echo 1 >"$online"
		done
	done
}

fork_bomb() {
	bomb() {
		bomb &
		bomb
	}
	while :; do (bomb); done
}

spinners() {
	for _ in $(seq $(($(nproc) * 2))); do
		while :; do :; done &
		echo $!
	done
}

move_between_cgroups() {
	# A cgroup with processes has no children that divide CPU time.
	mkdir $cgroups/torture/other
	echo 20 >$cgroups/torture/other/cpu.weight
	tasks=$(spinners)
	while :; do
		for cgroup in other load; do
			for task in $tasks; do echo "$task" >"$cgroups/torture/$cgroup/cgroup.procs"; done
		done
	done
}

stop_and_continue() {
	tasks=$(spinners)
	while :; do
		for signal in STOP CONT; do
			for task in $tasks; do kill -$signal "$task"; done
			sleep 0.05
		done
	done
}

# Half the CPUs run nothing but these, two seconds at a time.
real_time_hogs() {
	for _ in $(seq $(($(nproc) / 2))); do
		while :; do
			timeout 2 chrt -f 50 sh -c 'while :; do :; done' || :
			sleep 0.5
		done &
	done
	wait
}

# Interventions: a load with some knobs of the scheduler turned.

# knob_file NAME: the file in which this kernel has the setting NAME; fails where it has none.
knob_file() {
	for knob_candidate in "/sys/kernel/debug/sched/$1" "/sys/kernel/debug/sched/llc_balancing/${1#llc_}" \
		"/proc/sys/kernel/sched_$1" "/proc/sys/kernel/$1" "/sys/devices/system/cpu/$1/control"; do
		if [ -f "$knob_candidate" ]; then
			echo "$knob_candidate"
			return
		fi
	done
	return 1
}

# turn_feature NAME VALUE: 1 or 0; fails where this kernel has no such feature.
turn_feature() {
	feature_file=$(ls /sys/kernel/debug/sched/features /sys/kernel/debug/sched_features 2>/dev/null)
	feature_before=$(tr ' ' '\n' <"$feature_file" | grep -xE "(NO_)?$1") || return 1
	echo "$feature_file $feature_before" >>/tmp/turned
	if [ "$2" = 0 ]; then echo "NO_$1"; else echo "$1"; fi >"$feature_file"
}

# turn_knob NAME VALUE: features have names in capitals; cpus=LIST confines the load.
turn_knob() {
	case $1 in
	cpus) intervene_cpus="--cpus $2" ;;
	[A-Z]*) turn_feature "$1" "$2" ;;
	*)
		turned_file=$(knob_file "$1") || return 1
		echo "$turned_file $(cat "$turned_file")" >>/tmp/turned
		echo "$2" >"$turned_file"
		;;
	esac
}

# turn_back: all that was turned.
turn_back() {
	while read -r turned_file turned_before; do echo "$turned_before" >"$turned_file"; done </tmp/turned
}

# intervene RUN KNOBS SETTLE WORKLOAD CASE: reports the load's figures as RUN.NAME, with KNOBS
# (NAME=VALUE, joined by `;`) turned for SETTLE s before and while it runs.
intervene() {
	: >/tmp/turned
	intervene_cpus=
	echo 1 >/proc/sys/kernel/sched_schedstats
	for intervene_knob in $(echo "$2" | tr ';' ' '); do
		turn_knob "${intervene_knob%%=*}" "${intervene_knob#*=}" || {
			turn_back
			figure "$1.unknown" "$intervene_knob"
			return
		}
	done
	sleep "$3"
	# shellcheck disable=SC2086 # none or two words
	figures "$1" vm-guest load "$4" --case "$5" $intervene_cpus
	turn_back
}
