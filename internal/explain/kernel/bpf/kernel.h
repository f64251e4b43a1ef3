// SPDX-License-Identifier: Apache-2.0
// The kernel structures that the programs read, with only the fields that they use. Their offsets are taken from the
// running kernel's type information when a program is loaded (CO-RE).
#pragma once

#include <stdbool.h>

#include <linux/types.h>

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define KERNEL __attribute__((preserve_access_index))

struct task_struct {
	unsigned int __state;
	int pid, tgid;
	char comm[16];
	struct task_struct *real_parent;
	unsigned long jobctl;
} KERNEL;

struct task_struct___old { // before 5.14
	long state;
} KERNEL;

struct irqaction {
	const char *name;
} KERNEL;

struct net_device {
	char name[16];
	int ifindex;
} KERNEL;

struct napi_struct {
	struct net_device *dev;
} KERNEL;

struct sk_buff {
	struct net_device *dev;
} KERNEL;
