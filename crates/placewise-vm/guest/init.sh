#!/bin/busybox sh
# The first process of the guest: mounts, tells the shape of the machine, runs the scenario, sends
# what is in /out to the host, and powers off.

/bin/busybox --install -s /bin
export PATH=/bin HOME=/
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount -t debugfs debug /sys/kernel/debug
mount -t tracefs trace /sys/kernel/tracing 2>/dev/null
mount -t bpf bpf /sys/fs/bpf
mount -t cgroup2 cgroup /sys/fs/cgroup
chmod 1777 /tmp
# From here on the console has everything that the kernel says.
dmesg -n 8
ip link set lo up
mkdir -p /boot && mv /config "/boot/config-$(uname -r)"

. /functions.sh

topology=/sys/devices/system/cpu/cpu
echo "Linux $(uname -r)"
figure machine.cpus "$(nproc)"
figure machine.threads_per_core "$(cat ${topology}0/topology/thread_siblings_list | cpus_of_list | wc -l)"
figure machine.llcs "$(sort -u $topology[0-9]*/cache/index3/shared_cpu_list | wc -l)"
figure machine.nodes "$(ls -d /sys/devices/system/node/node[0-9]* | wc -l)"

sh -euc '. /functions.sh; . /scenario.sh'
figure script.status $?

dmesg >/out/dmesg
port=/dev/vport0p1
# Where virtio's console is a module, the second serial port has to do.
[ -e $port ] || { port=/dev/ttyS1 && stty -F $port raw; }
tar -cf $port -C /out .
poweroff -f
