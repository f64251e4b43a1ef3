// SPDX-License-Identifier: Apache-2.0
// Memory that another process can take away.
//
// A region must be a memfd sealed against shrinking, which VPP, libmemif and DPDK all do. The exception is hugetlb
// memory, which the zero-copy clients of VPP and DPDK share for their buffers and which they do not seal. For it, and
// for a page that the kernel cannot provide any more (a hole punched into the file, no huge page left), regions are
// guarded: the control side finds a lost one and disconnects the peer.
#include "port/memif/memif_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/memory_guard.h"

// Bytes to map, or -EPERM when the file is not safe to share, -EINVAL when it is shorter than promised.
static int64_t region_check(int fd, uint64_t size)
{
	struct statfs fs;
	struct stat st;
	int seals;

	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || (fs.f_type != TMPFS_MAGIC && fs.f_type != HUGETLBFS_MAGIC))
		return -EPERM;
	seals = fcntl(fd, F_GET_SEALS);
	if (fs.f_type == TMPFS_MAGIC && (seals < 0 || !(seals & F_SEAL_SHRINK)))
		return -EPERM;
	if (size == 0 || st.st_size < 0 || size > (uint64_t)st.st_size)
		return -EINVAL;
	return RTE_ALIGN_CEIL(size, (uint64_t)st.st_blksize); // hugetlb: unmapped only in whole huge pages
}

int memif_region_map(struct memif_region *r, int fd, uint64_t size)
{
	int64_t mapped = region_check(fd, size);
	uint8_t *addr;
	int guard;

	if (mapped < 0)
		return mapped;
	addr = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (addr == MAP_FAILED)
		return -errno;
	madvise(addr, mapped, MADV_DONTDUMP);
	guard = memory_guard_add(addr, mapped, NULL);
	if (guard < 0) {
		munmap(addr, mapped);
		return guard;
	}
	*r = (struct memif_region){.addr = addr, .size = size, .mapped = mapped, .guard = guard};
	return 0;
}

int memif_region_create(struct memif_region *r, uint64_t size)
{
	int fd = memfd_create("memif", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	int ret;

	if (fd < 0)
		return -errno;
	size = RTE_ALIGN_CEIL(size, (uint64_t)sysconf(_SC_PAGESIZE));
	if (ftruncate(fd, size) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		ret = -errno;
	else
		ret = memif_region_map(r, fd, size);
	if (ret == 0)
		return fd;
	close(fd);
	return ret;
}

void memif_region_unmap(struct memif_region *r)
{
	memory_guard_remove(r->guard);
	munmap(r->addr, r->mapped);
}

bool memif_region_lost(const struct memif_region *r)
{
	return memory_guard_lost(r->guard);
}
