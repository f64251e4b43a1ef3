// SPDX-License-Identifier: Apache-2.0
// The text of `corelaned --help`.
#include <stdio.h>

#include "base/fault_injection.h"
#include "flow/flow.h"
#include "main/options_private.h"
#include "main/standby.h"
#include "port/port_kinds.h"
#include "worker/handoff.h"

static const char *usage_numbers(const struct number_limits *l, char text[32])
{
	snprintf(text, 32, "%u to %u", (unsigned)l->min, (unsigned)l->max);
	return text;
}

void options_usage(void)
{
	char memory[32], mbufs[32], room[32], fib[32];

	printf("corelaned: the data plane of Corelane, a virtual router for compute nodes\n\n"
	       "usage: corelaned [OPTION...] [-- DPDK-ARGUMENT...]\n\n"
	       "  --run-dir DIR        sockets and lock of this instance (default /run/corelane)\n"
	       "  --socket PATH        API socket (default DIR/corelaned.sock)\n"
	       "  --state-dir DIR      keep all changes of the configuration in DIR: a start repeats them, and tap\n"
	       "                       interfaces outlive the process (default: nothing is kept)\n"
	       "  --worker-cpus CPUS   CPUs of the workers, one each, in this order: 2,4-7 (default: the last CPU\n"
	       "                       that this process may use)\n"
	       "  --service-cpus CPUS  CPUs of the service threads: control plane, vhost-user, rule compiler\n"
	       "                       (default: those of --control-cpus, else all without a worker)\n"
	       "  --control-cpus CPUS  CPUs of DPDK's own threads (default: those of --service-cpus, else all\n"
	       "                       without a worker)\n"
	       "  --allow-overlap      let service and control threads run on workers' CPUs, where packets wait for\n"
	       "                       them\n"
	       "  --idle POLICY        what workers do without packets: spin, pause, yield, sleep, interrupt (default\n"
	       "                       spin; yield when a worker shares its CPU with other threads of this process)\n"
	       "  --worker-ring-size N slots of the rings between workers, %s (default %d)\n"
	       "  --run-to-completion  the worker that polled a packet always finishes it: no port may be hybrid or\n"
	       "                       auto\n"
	       "  --no-huge            do not use hugepages\n"
	       "  --memory MB          memory for packets and tables, %s (default %d), from the\n"
	       "                       NUMA nodes of the workers\n"
	       "  --mbufs N            packet buffers, %s (default: depends on the memory)\n"
	       "  --mbuf-size BYTES    room for a packet in one buffer, %s (default %d)\n"
	       "  --fib-memory MB      upper bound of the forwarding tables, %s (default %d; allocated as\n"
	       "                       routes are added)\n"
	       "  --flows N            flows that can be kept at once, %s (default %d; allocated\n"
	       "                       when the first port keeps flows, 214 bytes each)\n"
	       "  --router-mac MAC     inner MAC of this router in routed VXLAN and Geneve (default: derived from the\n"
	       "                       host and DIR)\n"
	       "  --read-group GROUP   its members may use the API to look at everything but packets and secrets\n"
	       "                       (default corelane-read)\n"
	       "  --operate-group GROUP\n"
	       "                       its members may also capture packets, end flows and move load between workers\n"
	       "                       (default corelane-operate)\n"
	       "  --admin-group GROUP  its members may do everything, as root may (default corelane-admin). `corelane\n"
	       "                       roles` lists what each method of the API needs\n"
	       "  --log-level LEVEL    emergency, alert, critical, error, warning, notice, info, debug (default info)\n"
	       "  --user NAME          run as this user, with the few capabilities that the kinds of port need "
	       "(default:\n"
	       "                       the user that starts it; corelaned.service: corelane)\n"
	       "  --port-kinds KINDS   kinds that ports may have: dpdk, tap, memif, vhost, subport (default: all)\n"
	       "  --system-calls MODE  filtered: a system call that corelaned does not need ends it; logged: the "
	       "kernel\n"
	       "                       logs such calls; any (default: filtered with --user, else any)\n"
	       "  --takeover           prepare everything beside the corelaned that runs with the same options, then "
	       "ask "
	       "it\n"
	       "                       to stop and continue its work\n"
	       "  --detach             with --takeover: run in the background; the command returns once the new "
	       "daemon\n"
	       "                       has taken over, and tells systemd its process id (ExecReload of the service)\n"
	       "  --standby            ExecStop of the service. If systemd will start it again (a restart), take over "
	       "as\n"
	       "                       with --takeover --detach, and forward until the next start takes over, %d s at\n"
	       "                       most. Otherwise do nothing\n"
	       "  --core-dumps         leave core files after a crash; packets and guests' memory are not in them\n"
	       "%s"
	       "  --check              validate the options and exit\n"
	       "  --version, --help\n\n"
	       "CPUS is a list, 2,4-7 or (2,4-7), or a mask in hexadecimal that begins with 0x, of any width: 0xf0 is "
	       "CPUs\n"
	       "4-7, 10 is CPU 10. An empty set is refused, and so are CPUs that are offline and workers' CPUs in "
	       "another set.\n\n"
	       "vRouter's option names are accepted: --service_core_mask CPUS (--service-cpus),\n"
	       "--dpdk_ctrl_thread_mask CPUS (--control-cpus), --vr_dpdk_rx_ring_sz N (--worker-ring-size),\n"
	       "--vr_dpdk_tx_ring_sz N (checked; there are no such rings here), --yield_option 0|1\n"
	       "(--idle spin|yield), --vr_no_load_balance (--run-to-completion), --ddp (without effect: load the\n"
	       "profile into the NIC beforehand).\n\n"
	       "Everything else is configured with `corelane`. Arguments after -- go to DPDK's EAL unchanged.\n",
	       LIMIT_WORKER_RING_SIZE_VALID, HANDOFF_SIZE, usage_numbers(&memory_sizes, memory), MEMORY_DEFAULT,
	       usage_numbers(&mbuf_counts, mbufs), usage_numbers(&mbuf_sizes, room), PORT_POOL_ROOM,
	       usage_numbers(&fib_sizes, fib), FIB_DEFAULT, LIMIT_FLOW_RESIZE_REQUEST_CAPACITY_VALID,
	       FLOW_CAPACITY_DEFAULT, STANDBY_S,
	       fault_injection ? "  --allow-debug        let `corelane debug` disturb the workers\n" : "");
}
