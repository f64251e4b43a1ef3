// SPDX-License-Identifier: Apache-2.0
// Publishing to workers without locks (quiescent states, rte_rcu_qsbr).
//
// Workers read shared pointers with rcu_read() during one walk of their graph and report a quiescent state after it, so
// a pointer that a worker has read stays valid until the end of that walk and no longer. The control plane (master
// thread) builds a new object aside, publishes it with rcu_publish() and hands the old one to rcu_defer(): it is
// freed once every worker has passed a quiescent state. Only rcu_wait(), rcu_synchronize() and rcu_fini() make the
// master wait.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RCU_MAX_READERS 256

#define rcu_read(p) __atomic_load_n(&(p), __ATOMIC_ACQUIRE)
#define rcu_publish(p, v) __atomic_store_n(&(p), (v), __ATOMIC_RELEASE)

int rcu_init(void);
void rcu_fini(void); // waits for all readers and runs all deferred calls

#define RCU_MASTER (RCU_MAX_READERS - 1) // the master's id, for reading what workers free

// For readers. reader is RCU_MASTER or the id of a worker, which is lower.
void rcu_reader_online(unsigned reader);
void rcu_reader_offline(unsigned reader);
void rcu_quiescent(unsigned reader);
// Between these two calls an online reader holds no pointers, and no grace period waits for it.
void rcu_reader_rest(unsigned reader);
void rcu_reader_resume(unsigned reader);

// Any thread; neither call waits. rcu_token() marks the beginning of a grace period, rcu_passed() tells whether it is
// over. For memory that a reader frees itself.
uint64_t rcu_token(void);
bool rcu_passed(uint64_t token);

// Master thread only. fn(arg) runs on the master thread after a grace period.
void rcu_defer(void (*fn)(void *arg), void *arg);
void rcu_poll(void); // runs the calls that are due, a bounded number each time; called from the master's loop
unsigned rcu_pending(void);
// Returns the TSC cycles since the oldest rcu_defer() that this reader has not passed, 0 = none.
uint64_t rcu_behind(unsigned reader);

// Master thread: sleeps for a grace period. Returns false when it is not over after ms milliseconds.
bool rcu_wait(unsigned ms);

// Any thread that is not a reader: waits for a grace period. For callbacks of libraries that must not return while an
// object is in use (rte_vhost).
void rcu_synchronize(void);
