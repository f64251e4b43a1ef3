// SPDX-License-Identifier: Apache-2.0
// corelaned: the data plane. Starts DPDK, the workers and the API, and runs the master thread's loop.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>
#include <rte_common.h>
#include <rte_eal.h>
#include <systemd/sd-daemon.h>

#include "api/api.h"
#include "base/fault_injection.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/rcu.h"
#include "base/socket_access.h"
#include "base/turn.h"
#include "boot/boot.h"
#include "control/streams.h"
#include "control/system.h"
#include "flow/flow.h"
#include "flow/flow_carry.h"
#include "flow/flow_log.h"
#include "graph/counters.h"
#include "graph/graph.h"
#include "host/host.h"
#include "keep/carry.h"
#include "keep/keep.h"
#include "l2/bridge.h"
#include "l2/mac_carry.h"
#include "l3/fib.h"
#include "l3/nexthop.h"
#include "l3/tunnel.h"
#include "l3/underlay.h"
#include "l3/vrf.h"
#include "main/detach.h"
#include "main/eal.h"
#include "main/options.h"
#include "main/standby.h"
#include "main/takeover.h"
#include "main/watchdog.h"
#include "neighbor/neighbor.h"
#include "neighbor/neighbor_carry.h"
#include "overlay/overlay.h"
#include "policy/meter.h"
#include "policy/mirror.h"
#include "policy/rules.h"
#include "policy/service.h"
#include "port/port_after.h"
#include "port/port_carry.h"
#include "port/port_kinds.h"
#include "port/registry.h"
#include "privilege/privilege.h"
#include "threads/threads.h"
#include "threads/worker_watch.h"
#include "worker/load.h"
#include "worker/punt.h"
#include "worker/spread.h"
#include "worker/worker.h"

#define TICK_US 1000  // between polls of the master's rings
#define SHARE_US 2000 // of other events, between two looks at the timers
#define SLOW_TICK 100 // ticks between polls of slow timers

static int main_fail(const struct error *err)
{
	fprintf(stderr, "corelaned: %s\n", err->message);
	return 2;
}

struct poll {
	void (*poll)(void);
	struct turn_work work;
};

#define POLL(fn)                              \
	{                                     \
		.poll = fn, .work.name = #fn, \
	}

// The master's work, in the order of each list.
static struct poll tick_polls[] = {POLL(punt_poll),  POLL(worker_poll),  POLL(load_poll),    POLL(bridge_tick),
				   POLL(rcu_poll),   POLL(port_poll),    POLL(nexthop_poll), POLL(vrf_poll),
				   POLL(rules_poll), POLL(service_poll), POLL(streams_poll), POLL(flow_poll),
				   POLL(carry_poll)};
static struct poll slow_polls[] = {POLL(neighbor_poll), POLL(bridge_poll), POLL(flow_log_poll)};
static struct poll tenth_polls[] = {POLL(worker_watch_poll), POLL(watchdog_poll), POLL(worker_health_poll)};
static struct poll second_polls[] = {POLL(threads_poll), POLL(keep_poll), POLL(boot_poll), POLL(port_buffers_poll)};

static void run_polls(struct poll *polls, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		turn_begin(&polls[i].work);
		polls[i].poll();
		turn_end();
	}
}

// The next tick is due a millisecond after this one has ended, whatever that took: the loop gets to other events
// between two ticks.
static void schedule_tick(struct event *tick)
{
	static const struct timeval interval = {.tv_usec = TICK_US};

	event_base_update_cache_time(loop_base());
	event_add(tick, &interval);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	static unsigned ticks;

	turn_next();
	run_polls(tick_polls, RTE_DIM(tick_polls));
	if (++ticks % SLOW_TICK == 0)
		run_polls(slow_polls, RTE_DIM(slow_polls));
	schedule_tick(event_base_get_running_event(loop_base()));
}

// Has a timer of its own: counted ticks are late when the master's CPU is busy, and just then the workers must be
// watched.
static void on_tenth(evutil_socket_t fd, short what, void *arg)
{
	run_polls(tenth_polls, RTE_DIM(tenth_polls));
}

static void on_second(evutil_socket_t fd, short what, void *arg)
{
	run_polls(second_polls, RTE_DIM(second_polls));
}

static void main_on_signal(evutil_socket_t fd, short what, void *arg)
{
	LOG(INFO, "stopping");
	event_base_loopbreak(loop_base());
}

// Allows one instance per run directory: the lock ends with the process, or when its ports are closed. wait: for the
// end of the one that was asked to.
static int lock_run_dir(const char *dir, bool wait, struct error *err)
{
	char path[128];
	int fd;

	if (mkdir(dir, 0711) < 0 && errno != EEXIST)
		return error_set(err, errno, "--run-dir", dir, "a path that can be created", "%s", strerror(errno));
	snprintf(path, sizeof(path), "%s/corelaned.lock", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
	if (fd < 0 && errno == EACCES && access(path, F_OK) == 0) // a daemon of another user has left it
		return error_set(
			err, EACCES, "--run-dir", dir,
			"another directory, or this one once corelaned.lock is removed while no corelaned runs there",
			"%s cannot be opened by uid %u: Permission denied", path, (unsigned)geteuid());
	if (fd < 0)
		return error_set(err, errno, "--run-dir", dir, "a directory that can be written to", "%s",
				 strerror(errno));
	if (wait ? takeover_wait(fd) == 0 : flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	close(fd);
	return error_set(err, EBUSY, "--run-dir", dir, "another directory with --run-dir",
			 "another corelaned runs there");
}

// What a start spends its time with.
static struct {
	uint64_t begin, eal, asked, taken, tables, ports, state; // ns
} took;

static uint64_t main_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static double main_ms(uint64_t from, uint64_t to)
{
	return (double)(to - from) / 1e6;
}

static int start_tables(const struct options *o, struct error *err)
{
	counters = counters_create(SOCKET_ID_ANY); // for packets that the master drops
	if (counters == NULL || fib_init((uint64_t)o->fib_mb << 20) < 0 || punt_init() < 0)
		return error_set(err, ENOMEM, "--memory", NULL, "more memory", "is too small for the tables");
	if (port_pool_init(o->mbufs, o->mbuf_size) < 0)
		return error_set(err, ENOMEM, "--memory", NULL, "more memory", "is too small for the packet buffers");
	if (vrf_init(err) < 0 || overlay_init(err) < 0 || bridge_init(err) < 0)
		return -1;
	if (neighbor_init() < 0 || nexthop_init() < 0)
		return error_set(err, ENOMEM, "--memory", NULL, "more memory", "is too small for the tables");
	if (flow_init(o->flows) < 0)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no address range for flows");
	flow_zone_init();
	port_carry_init();
	flow_carry_init();
	port_names_carry_init();
	neighbor_carry_init();
	mac_carry_init();
	boot_init();
	meter_init();
	mirror_init();
	host_init();
	if (rules_init(err) < 0)
		return -1;
	return underlay_init(err);
}

// A warning, because overlap costs packets and the operator may not know of it.
static void warn_of_overlap(const struct options *o)
{
	char text[CPU_LIST_TEXT];

	if (!cpu_list_empty(&o->overlap))
		LOG(WARNING,
		    "OVERLAP: workers share CPUs %s with service or control threads, and packets wait while those run; "
		    "see --worker-cpus, --service-cpus, --control-cpus",
		    cpu_list_format(&o->overlap, text, sizeof(text)));
}

static int start_workers(const struct options *o, struct error *err)
{
	struct worker_config cfg = {.role = WORKER_FORWARDING, .ring_size = o->rx_ring_size};
	const struct placement *p = &o->placement;
	unsigned i;

	if (o->allow_debug)
		fault_injection->allowed = true;
	for (i = 0; i < p->n_workers; i++) {
		cfg.cpu = p->worker_cpus[i];
		cfg.idle = o->idle_given ? o->idle : cpu_list_has(&o->overlap, cfg.cpu) ? IDLE_YIELD : IDLE_SPIN;
		if (worker_add(i, &cfg, err) == NULL)
			return -1;
	}
	return 0;
}

// Each API client and each queue of a port needs file descriptors.
static void raise_file_limit(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

static void set_groups(const struct options *o)
{
	unsigned r;

	for (r = ROLE_READ; r < ROLES; r++)
		if (role_set_group(r, o->groups[r]) < 0)
			LOG(NOTICE, "there is no group %s: its role is root's alone", o->groups[r]);
}

// A standby waits 30 s for its successor, and a slow start takes longer.
static bool main_nobody_left(const struct options *o, int ret)
{
	return o->relieve && (ret == -ENOENT || ret == -ECONNREFUSED || ret == -ESRCH);
}

static int main_ask(const struct options *o, struct error *err)
{
	int pid = 0, ret = takeover_find(o->socket, &pid, err);

	if (main_nobody_left(o, ret)) {
		LOG(NOTICE, "the standby has ended, and nothing was forwarded since");
		return 0;
	}
	if (ret == 0)
		ret = detach_main(err);
	if (ret < 0)
		return ret;
	took.asked = main_now_ns();
	takeover_ask(pid);
	return 0;
}

// What the loop would do meanwhile.
static void run_ticks(void)
{
	run_polls(tick_polls, RTE_DIM(tick_polls));
}

// Everything but ports is there before the predecessor is asked to stop.
static int take_over(const struct options *o, int *lock, struct error *err)
{
	int ret = keep_warm(o->state_dir, run_ticks, err);

	service_finish(run_ticks); // while the predecessor still forwards
	if (ret == 0)
		ret = main_ask(o, err);
	if (ret < 0)
		return ret;
	*lock = lock_run_dir(o->run_dir, true, err);
	return *lock < 0 ? -EBUSY : 0;
}

static int main_start(const struct options *o, int *lock, struct error *err)
{
	int ret = rcu_init();

	set_groups(o);
	spread_never = o->run_to_completion;
	if (o->tx_ring_size)
		LOG(NOTICE, "--vr_dpdk_tx_ring_sz has no effect: workers send by themselves, without rings");
	if (ret < 0)
		return error_set(err, -ret, NULL, NULL, NULL, "no memory");
	// Before large allocations: what does not come from DPDK is on the NUMA node that the master runs on.
	threads_start(&o->machine, &o->placement);
	ret = start_tables(o, err);
	if (ret == 0)
		ret = graph_init(err);
	system_init(o->socket, eal_has_hugepages());
	tunnel_set_router_mac(&o->router_mac, o->run_dir);
	worker_hold_ports();
	if (ret == 0)
		ret = start_workers(o, err);
	threads_poll(); // for threads that were started meanwhile
	worker_watch_poll();
	worker_health_poll();
	service_hold(true);
	if (ret == 0 && o->takeover)
		ret = take_over(o, lock, err);
	took.taken = main_now_ns();
	if (ret == 0)
		ret = keep_start(o->state_dir, err);
	if (o->state_dir[0])
		port_taps = PORT_TAPS_OUTLIVE;
	took.tables = main_now_ns();
	socket_access_remember(true);
	if (ret == 0)
		ret = keep_restore(run_ticks, err);
	socket_access_remember(false);
	took.ports = main_now_ns();
	if (ret == 0 && o->state_dir[0])
		carry_load(o->run_dir);
	service_finish(run_ticks); // no new flow is refused, or goes to an endpoint that was removed since
	service_hold(false);
	worker_release_ports();
	took.state = main_now_ns();
	return ret < 0 ? ret : api_server_start(loop_base(), o->socket, err);
}

// Timers run before other events (priority 0 and 1), and the loop looks for them every SHARE_US: however many clients
// send requests, they do not keep the master from its rings.
static struct event_base *main_loop(void)
{
	static const struct timeval share = {.tv_usec = SHARE_US};
	struct event_config *cfg = event_config_new();
	struct event_base *base;

	event_config_set_max_dispatch_interval(cfg, &share, -1, 1);
	base = event_base_new_with_config(cfg);
	event_config_free(cfg);
	event_base_priority_init(base, 2);
	return base;
}

static struct event *new_event(evutil_socket_t fd, short what, event_callback_fn fn)
{
	return event_new(loop_base(), fd, what, fn, NULL);
}

static void add_timer(event_callback_fn fn, const struct timeval *interval)
{
	struct event *e = new_event(-1, EV_PERSIST, fn);

	event_priority_set(e, 0);
	event_add(e, interval);
}

static void on_patience(evutil_socket_t fd, short what, void *arg)
{
	LOG(ERR, "the service was not started again within %d s: stopping", STANDBY_S);
	event_base_loopbreak(loop_base());
}

static void on_standby_look(evutil_socket_t fd, short what, void *arg)
{
	if (!standby_forsaken())
		return;
	LOG(NOTICE, "the service was stopped, and will not be started again: stopping");
	event_base_loopbreak(loop_base());
}

static void main_run(const struct options *o)
{
	static const struct timeval tenth = {.tv_usec = 100000}, second = {.tv_sec = 1};
	static const struct timeval patience = {.tv_sec = STANDBY_S};
	struct event *tick = new_event(-1, 0, on_tick);

	event_add(new_event(SIGTERM, EV_SIGNAL | EV_PERSIST, main_on_signal), NULL);
	event_add(new_event(SIGINT, EV_SIGNAL | EV_PERSIST, main_on_signal), NULL);
	event_priority_set(tick, 0);
	schedule_tick(tick);
	add_timer(on_tenth, &tenth);
	add_timer(on_second, &second);
	if (o->standby) {
		add_timer(on_patience, &patience);
		add_timer(on_standby_look, &tenth);
	}
	LOG(INFO, "corelaned %s answers on %s after %.0f ms: DPDK took %.0f, tables and workers %.0f, its state %.0f",
	    CORELANE_VERSION, o->socket, main_ms(took.begin, main_now_ns()), main_ms(took.begin, took.eal),
	    main_ms(took.eal, took.tables), main_ms(took.tables, took.state));
	watchdog_init();
	if (o->state_dir[0])
		carry_start(o->run_dir);
	if (took.asked)
		LOG(INFO,
		    "took over: no daemon forwarded for %.1f ms (end of the other one %.1f ms, ports %.1f ms, flows "
		    "%.1f ms)",
		    main_ms(took.asked, took.state), main_ms(took.asked, took.taken), main_ms(took.taken, took.ports),
		    main_ms(took.ports, took.state));
	sd_notify(0, "READY=1");
	detach_end();
	event_base_dispatch(loop_base());
	sd_notify(0, "STOPPING=1");
}

static void main_stop(int lock)
{
	uint64_t begin = main_now_ns(), idle, saved;
	bool all_ended;

	keep_stop();
	api_server_stop();
	event_base_loop(loop_base(), EVLOOP_NONBLOCK); // libevent frees connections from its loop
	if (fault_injection)
		fault_injection->stop();
	all_ended = worker_del_all(); // then no reader is left
	idle = main_now_ns();
	carry_stop();
	saved = main_now_ns();
	if (!all_ended) // the kernel takes back what a stalled worker may still use
		_exit(EXIT_FAILURE);
	if (port_taps == PORT_TAPS_OUTLIVE)
		port_taps = PORT_TAPS_LEAVE;
	port_del_all();
	close(lock); // a successor may wait for it
	LOG(INFO, "stopped in %.1f ms (API and workers %.1f ms, flows %.1f ms, ports %.1f ms)",
	    main_ms(begin, main_now_ns()), main_ms(begin, idle), main_ms(idle, saved), main_ms(saved, main_now_ns()));
	keep_leave();
	rcu_fini();
	rules_fini();
	rte_eal_cleanup();
}

int main(int argc, char **argv)
{
	struct error err = {0};
	struct options o;
	int lock, ret = options_parse(argc, argv, &o, &err);
	const struct privilege_options rights = {.user = o.user,
						 .run_dir = o.run_dir,
						 .state_dir = o.state_dir,
						 .system_calls = o.system_calls,
						 .core_dumps = o.core_dumps};

	if (ret < 0)
		return main_fail(&err);
	if (ret > 0)
		return 0;
	if (o.check && privilege_check(&rights, &err) < 0)
		return main_fail(&err);
	if (o.check) {
		printf("options are valid%s\n",
		       cpu_list_empty(&o.overlap) ? "" : "; workers share CPUs with other threads");
		return 0;
	}
	if (o.standby && !standby_wanted())
		return 0;
	o.takeover |= o.standby;
	if ((o.detach || o.standby) && detach_begin(o.standby, &err) < 0)
		return main_fail(&err);
	took.begin = main_now_ns();
	signal(SIGPIPE, SIG_IGN);
	raise_file_limit();
	if (privilege_drop(&rights, &err) < 0 || (o.standby && standby_claim(o.run_dir, &err) < 0))
		return main_fail(&err);
	o.relieve = !o.takeover && standby_runs(o.run_dir);
	o.takeover |= o.relieve;
	lock = o.takeover ? -1 : lock_run_dir(o.run_dir, false, &err);
	if ((lock < 0 && !o.takeover) || eal_start(&o, &err) < 0 || privilege_filter(&rights, &err) < 0)
		return main_fail(&err);
	took.eal = main_now_ns();
	warn_of_overlap(&o);
	loop_set_base(main_loop());
	if (main_start(&o, &lock, &err) < 0) {
		if (worker_del_all())
			rte_eal_cleanup();
		return main_fail(&err);
	}
	main_run(&o);
	main_stop(lock);
	return 0;
}
