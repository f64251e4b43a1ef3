// SPDX-License-Identifier: Apache-2.0

// Package kernel watches the CPUs of workers with eBPF: it finds what runs there while a worker does not. Events are
// summed up in the kernel; only long gaps are reported one by one.
//
// The compiled object is committed, so that clang and libbpf's headers are needed only to change bpf/*.c: 'make bpf'
// compiles the object, 'make bpf-check' says whether it is current.
package kernel

//go:generate ../../../tools/bpf.sh
