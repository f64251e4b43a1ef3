// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "base/fault_injection.h"
#include "main/options_private.h"

void options_usage(void)
{
	printf("corelaned: the data plane of Corelane, a virtual router for compute nodes\n\n"
	       "usage: corelaned [OPTION...] [-- DPDK-ARGUMENT...]\n\n"
	       "  --run-dir DIR        sockets and lock of this instance (default /run/corelane)\n"
	       "  --socket PATH        API socket (default DIR/corelaned.sock)\n"
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
	       "  --worker-ring-size N slots of the rings between workers, a power of two from 64 to 4194304 (default 1024)\n"
	       "  --run-to-completion  the worker that polled a packet always finishes it: no port may be hybrid or\n"
	       "                       auto\n"
	       "  --no-huge            do not use hugepages\n"
	       "  --memory MB          memory for packets and tables, 64 to 1048576 (default 512)\n"
	       "  --mbufs N            packet buffers, 1024 to 16777216 (default: depends on the memory)\n"
	       "  --mbuf-size BYTES    room for a packet in one buffer, 2048 to 16384 (default 2048)\n"
	       "  --fib-memory MB      upper bound of the forwarding tables, 16 to 65536 (default 4096; allocated as\n"
	       "                       routes are added)\n"
	       "  --flows N            flows that can be kept at once, 1024 to 33554432 (default 524288; allocated\n"
	       "                       when the first port keeps flows, 214 bytes each)\n"
	       "  --router-mac MAC     this router in routed VXLAN (default: derived from the host and DIR)\n"
	       "  --log-level LEVEL    emergency, alert, critical, error, warning, notice, info, debug (default info)\n"
	       "%s"
	       "  --check              validate the options and exit\n"
	       "  --version, --help\n\n"
	       "CPUS is a list, 2,4-7 or (2,4-7), or a mask in hexadecimal that begins with 0x, of any width: 0xf0 is CPUs\n"
	       "4-7, 10 is CPU 10. An empty set is refused, and so are CPUs that are offline and workers' CPUs in another set.\n\n"
	       "vRouter's option names are accepted: --service_core_mask CPUS (--service-cpus),\n"
	       "--dpdk_ctrl_thread_mask CPUS (--control-cpus), --vr_dpdk_rx_ring_sz N (--worker-ring-size),\n"
	       "--vr_dpdk_tx_ring_sz N (checked; there are no such rings here), --yield_option 0|1\n"
	       "(--idle spin|yield), --vr_no_load_balance (--run-to-completion).\n\n"
	       "Everything else is configured with `corelane`. Arguments after -- go to DPDK's EAL unchanged.\n",
	       fault_injection ? "  --allow-debug        let `corelane debug` disturb the workers\n" : "");
}
