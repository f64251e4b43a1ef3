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

// Readers: reader is the worker's id, below RCU_MAX_READERS.
void rcu_reader_online(unsigned reader);
void rcu_reader_offline(unsigned reader);
void rcu_quiescent(unsigned reader);

// Master thread only. fn(arg) runs on the master thread after all readers have passed.
void rcu_defer(void (*fn)(void *arg), void *arg);
void rcu_poll(void); // runs what has become due; called from the master's loop
unsigned rcu_pending(void);

// Any thread that is not a reader: waits until all readers have passed. For libraries whose callbacks must not return
// before nobody uses an object (rte_vhost).
void rcu_synchronize(void);
