// SPDX-License-Identifier: Apache-2.0

// Package kernel watches the CPUs of workers with eBPF: who has them when a worker has not. Events are summed up in the kernel;
// only long gaps are told one by one.
//
// The object that is loaded is committed, so that only who changes bpf/*.c needs clang and libbpf's headers: 'make bpf' compiles it
// anew, 'make bpf-check' says whether it is current.
package kernel

//go:generate ../../../tools/bpf.sh
