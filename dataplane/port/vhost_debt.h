// SPDX-License-Identifier: Apache-2.0
// Bounds the time that a guest's descriptors take from a worker. librte_vhost follows each chain to its end, also one
// of descriptors without a byte. To send one frame to a guest that takes it in several buffers, it follows the chains
// of up to all entries of the ring, each as long as the ring. Finding no frame takes as long as the ring, for each
// queue pair.
//
// A call of the library that takes longer than frames are worth adds to the debt of that direction of the queue, which
// is paid with 1/VHOST_DEBT_SHARE of the time that passes. A queue that owes more than VHOST_DEBT_MOST_US rests, so
// that it has at most this share of its worker in a direction. Only the excess counts, and no more than
// VHOST_DEBT_CALL_US: a hypervisor may have taken the CPU meanwhile. A call during which the kernel gave the CPU to
// others does not count.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#define VHOST_DEBT_SHARE 4
#define VHOST_DEBT_MOST_US 30000
#define VHOST_DEBT_CALL_US 10000 // a ring of VHOST_LONGEST_RING entries takes 4,000
#define VHOST_CALL_US 1          // of a call, whatever it finds
#define VHOST_FRAME_US 4         // of a frame, in up to 256 pieces
#define VHOST_US_BYTES 1000      // that are copied in a microsecond, at least

struct vhost_debt {       // of a direction of a queue. Its worker: rw
	uint64_t paid_at; // TSC, 0 = nothing is owed
};

static inline uint64_t vhost_debt_cycles(uint64_t us, uint64_t hz)
{
	return us * (hz / 1000000);
}

// What a call of the library that took so many cycles owes for them, having moved frames with so many bytes. hz: of the
// TSC.
static inline uint64_t vhost_debt_excess(uint64_t cycles, unsigned frames, uint32_t bytes, uint64_t hz)
{
	uint64_t worth = vhost_debt_cycles(VHOST_CALL_US + frames * VHOST_FRAME_US + bytes / VHOST_US_BYTES, hz);

	return likely(cycles <= worth) ? 0 : RTE_MIN(cycles - worth, vhost_debt_cycles(VHOST_DEBT_CALL_US, hz));
}

static inline void vhost_debt_add(struct vhost_debt *d, uint64_t now, uint64_t excess)
{
	d->paid_at = RTE_MAX(d->paid_at, now) + VHOST_DEBT_SHARE * excess;
}

// How many frames the library may be asked for: what is spent is known after each frame of a queue that owes time.
static inline uint16_t vhost_debt_burst(const struct vhost_debt *d, uint16_t burst)
{
	return likely(d->paid_at == 0) ? burst : 1;
}

// Whether the queue rests.
static inline bool vhost_debt_is_due(struct vhost_debt *d, uint64_t now, uint64_t hz)
{
	if (d->paid_at <= now)
		d->paid_at = 0;
	return d->paid_at > now + VHOST_DEBT_SHARE * vhost_debt_cycles(VHOST_DEBT_MOST_US, hz);
}
