// SPDX-License-Identifier: Apache-2.0
// The lists are names, because a call has another number, or does not exist, on another architecture. Calls that are
// restricted by an argument are rules of their own.
#include "privilege/filter.h"

#include <errno.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <linux/vfio.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_common.h>

#define CALLS 512 // numbers whose names are kept; there are fewer

static enum filter_mode mode;
static char *names[CALLS]; // prepared, because a signal handler cannot allocate

// What every thread may do: signals, memory, locks, its own end.
static const char common_calls[] = "brk clock_gettime clock_nanosleep exit exit_group futex getcpu getpid gettid "
				   "gettimeofday madvise munmap nanosleep restart_syscall rt_sigprocmask rt_sigreturn "
				   "sched_getaffinity sched_yield tgkill";

// Frames of taps and packet sockets, doorbells (eventfd), signals of memif peers and guests (base/event_signal.h),
// af_packet's and af_xdp's sends, waiting for packets.
static const char worker_calls[] =
	"epoll_pwait epoll_wait io_setup io_submit poll ppoll read readv recvfrom recvmmsg sendmmsg "
	"sendto write writev";

static const char process_calls[] =
	// files
	"access chmod chown close close_range faccessat faccessat2 fallocate fchmod fchmodat "
	"fchown fchownat fcntl flock fstat fstatfs fsync ftruncate getcwd getdents64 lchown lseek "
	"lstat mkdir mkdirat newfstatat open openat pread64 pwrite64 read readlink readlinkat "
	"readv rename renameat renameat2 rmdir stat setxattr statfs statx umask unlink unlinkat "
	"write writev "
	// descriptors and waiting
	"dup dup2 dup3 epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait "
	"eventfd eventfd2 inotify_add_watch inotify_init1 inotify_rm_watch ioctl pipe pipe2 poll "
	"ppoll pselect6 select signalfd4 timerfd_create timerfd_gettime timerfd_settime "
	// sockets
	"accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg "
	"recvmsg sendmmsg sendmsg sendto setsockopt shutdown socket socketpair "
	// memory
	"get_mempolicy mbind memfd_create mincore mlock mlock2 mmap move_pages mprotect mremap "
	"msync munlock set_mempolicy "
	// threads, signals, time
	"arch_prctl clock_getres io_destroy io_getevents io_setup io_submit membarrier rseq "
	"rt_sigaction rt_sigpending rt_sigtimedwait sched_get_priority_max sched_get_priority_min "
	"sched_getparam sched_getscheduler sched_setaffinity sched_setscheduler set_robust_list "
	"set_tid_address sigaltstack time times "
	// what the process is, and giving up rights
	"capget capset getegid geteuid getgid getgroups getppid getpriority getrandom getresgid "
	"getresuid getrlimit getrusage getuid prctl prlimit64 seccomp setrlimit sysinfo uname";

static const char helper_calls[] = "close getppid openat recvmsg sendmsg write";

static const char *call_name(int call)
{
	return call >= 0 && call < CALLS && names[call] ? names[call] : "unknown";
}

// SA_RESETHAND has restored the default action, which ends the process.
static void on_violation(int signal, siginfo_t *info, void *context)
{
	char thread[16] = "?", line[256];
	int n;

	prctl(PR_GET_NAME, thread);
	n = snprintf(
		line, sizeof(line),
		"corelaned: thread %s made system call %d (%s), which its filter does not allow: the process ends\n",
		thread, info->si_syscall, call_name(info->si_syscall));
	n = (int)write(STDERR_FILENO, line, (size_t)n);
	(void)n; // the process ends all the same
	tgkill(getpid(), gettid(), SIGSYS);
}

static int watch_violations(void)
{
	struct sigaction sa = {.sa_sigaction = on_violation, .sa_flags = SA_SIGINFO | SA_RESETHAND | SA_NODEFER};
	int i;

	for (i = 0; i < CALLS; i++)
		if (names[i] == NULL)
			names[i] = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, i);
	return sigaction(SIGSYS, &sa, NULL) < 0 ? -errno : 0;
}

// Ignores what this architecture does not have.
static int filter_allow(scmp_filter_ctx f, const char *name, unsigned n_conditions,
			const struct scmp_arg_cmp *conditions)
{
	int call = seccomp_syscall_resolve_name(name);

	return call < 0 ? 0 : seccomp_rule_add_array(f, SCMP_ACT_ALLOW, call, n_conditions, conditions);
}

static int allow_value(scmp_filter_ctx f, const char *name, unsigned argument, uint64_t value)
{
	const struct scmp_arg_cmp is = {.arg = argument, .op = SCMP_CMP_EQ, .datum_a = value};

	return filter_allow(f, name, 1, &is);
}

static int allow_bits(scmp_filter_ctx f, const char *name, unsigned argument, uint64_t mask, uint64_t bits)
{
	const struct scmp_arg_cmp are = {.arg = argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = bits};

	return filter_allow(f, name, 1, &are);
}

static int allow_all(scmp_filter_ctx f, const char *list)
{
	char name[32];
	size_t len;
	int ret = 0;

	for (; *list != '\0' && ret == 0; list += len + strspn(list + len, " ")) {
		len = strcspn(list, " ");
		snprintf(name, sizeof(name), "%.*s", (int)len, list);
		ret = filter_allow(f, name, 0, NULL);
	}
	return ret;
}

// A new filter with the common calls. NULL: no memory, or the kernel has no filters.
//
// Without the SSB attribute, kernels before 5.16 would turn off speculative stores for the thread, which costs a worker
// several percent. The mitigation is for programs that run foreign code; none runs here.
static scmp_filter_ctx filter_new(enum filter_mode how)
{
	scmp_filter_ctx f = seccomp_init(how == FILTER_LOG ? SCMP_ACT_LOG : SCMP_ACT_TRAP);

	if (f != NULL && seccomp_attr_set(f, SCMP_FLTATR_CTL_SSB, 1) == 0 &&
	    seccomp_attr_set(f, SCMP_FLTATR_CTL_OPTIMIZE, 2) == 0 && allow_all(f, common_calls) == 0 &&
	    allow_value(f, "prctl", 0, PR_GET_NAME) == 0)
		return f;
	if (f != NULL)
		seccomp_release(f);
	return NULL;
}

static int filter_load(scmp_filter_ctx f, int ret)
{
	if (ret == 0)
		ret = seccomp_load(f);
	seccomp_release(f);
	return ret;
}

// Threads, but no processes and no namespaces. The flags of clone3() are in memory, where a filter cannot see them: the
// C library uses clone() instead when it does not exist.
static int allow_threads(scmp_filter_ctx f)
{
	int ret = allow_bits(f, "clone", 0, CLONE_THREAD | CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS, CLONE_THREAD);

	return ret < 0 ? ret : seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
}

int filter_process(enum filter_mode how)
{
	scmp_filter_ctx f;
	int ret;

	mode = how;
	if (how == FILTER_OFF)
		return 0;
	ret = watch_violations();
	if (ret < 0)
		return ret;
	f = filter_new(how);
	if (f == NULL)
		return -ENOMEM;
	ret = seccomp_attr_set(f, SCMP_FLTATR_CTL_TSYNC, 1);
	if (ret == 0)
		ret = allow_all(f, process_calls);
	if (ret == 0)
		ret = allow_threads(f);
	return filter_load(f, ret);
}

// A worker maps memory only when the C library enlarges its heap, or a guest has taken memory away, and never
// executable. It leaves other faults to the kernel (base/memory_guard.h).
static int allow_worker(scmp_filter_ctx f)
{
	int ret = allow_all(f, worker_calls);

	if (ret == 0)
		ret = allow_bits(f, "mmap", 2, PROT_EXEC, 0);
	if (ret == 0)
		ret = allow_bits(f, "mprotect", 2, PROT_EXEC, 0);
	if (ret == 0)
		ret = allow_value(f, "rt_sigaction", 0, SIGBUS);
	if (ret == 0)
		ret = allow_value(f, "rt_sigaction", 0, SIGSEGV);
	return ret < 0 ? ret : allow_value(f, "ioctl", 1, VFIO_DEVICE_SET_IRQS); // receive interrupts of NICs
}

int filter_worker(void)
{
	scmp_filter_ctx f;

	if (mode == FILTER_OFF)
		return 0;
	f = filter_new(mode);
	return f == NULL ? -ENOMEM : filter_load(f, allow_worker(f));
}

int filter_helper(void)
{
	static const unsigned long requests[] = {TUNSETIFF,    TUNGETIFF,    TUNGETDEVNETNS, SIOCSIFMTU,
						 SIOCGIFFLAGS, SIOCSIFFLAGS, SIOCGIFHWADDR,  SIOCSIFHWADDR};
	scmp_filter_ctx f;
	unsigned i;
	int ret = watch_violations();

	if (ret < 0)
		return ret;
	f = filter_new(FILTER_KILL);
	if (f == NULL)
		return -ENOMEM;
	ret = allow_all(f, helper_calls);
	if (ret == 0)
		ret = allow_value(f, "prctl", 0, PR_SET_PDEATHSIG);
	if (ret == 0)
		ret = allow_value(f, "setns", 1, CLONE_NEWNET);
	if (ret == 0)
		ret = allow_value(f, "socket", 0, AF_UNIX);
	for (i = 0; i < RTE_DIM(requests) && ret == 0; i++)
		ret = allow_value(f, "ioctl", 1, requests[i]);
	return filter_load(f, ret);
}
