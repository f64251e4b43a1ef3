// SPDX-License-Identifier: Apache-2.0
// Publishing to workers without locks (quiescent states, rte_rcu_qsbr).
//
// Workers read shared pointers with rcu_read() during one walk of their graph and report a quiescent state after it, so
// a pointer that a worker has read stays valid until the end of that walk and no longer. The control plane (master
// thread) builds a new object aside, publishes it with rcu_publish() and hands the old one to rcu_defer(): it is
// freed once every worker has passed a quiescent state. Nothing here makes the master wait, except rcu_synchronize().
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RCU_MAX_READERS 256

#define rcu_read(p) __atomic_load_n(&(p), __ATOMIC_ACQUIRE)
#define rcu_publish(p, v) __atomic_store_n(&(p), (v), __ATOMIC_RELEASE)

int rcu_init(void);
void rcu_fini(void); // runs what is still deferred

#define RCU_MASTER (RCU_MAX_READERS - 1) // the master, while it reads what workers free

// Readers: reader is the worker's id, below RCU_MASTER, or RCU_MASTER.
void rcu_reader_online(unsigned reader);
void rcu_reader_offline(unsigned reader);
void rcu_quiescent(unsigned reader);
// Between these two a reader that is online reads nothing, and nobody waits for it.
void rcu_reader_rest(unsigned reader);
void rcu_reader_resume(unsigned reader);

// Any thread: a moment, and whether every reader has passed a quiescent state since; neither waits. For memory that a reader gives back itself.
uint64_t rcu_token(void);
bool rcu_passed(uint64_t token);

// Master thread only. fn(arg) runs on the master thread after all readers have passed.
void rcu_defer(void (*fn)(void *arg), void *arg);
void rcu_poll(void); // runs what has become due, a bounded number at a time; called from the master's loop
unsigned rcu_pending(void);
uint64_t rcu_behind(unsigned reader); // TSC cycles since the oldest rcu_defer() that this reader has not passed, 0 = none

// Master thread: sleeps until all readers have passed. False: one has not within this time.
bool rcu_wait(unsigned ms);

// Any thread that is not a reader: waits until all readers have passed. For libraries whose callbacks must not return
// before nobody uses an object (rte_vhost).
void rcu_synchronize(void);
