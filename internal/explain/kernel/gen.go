// SPDX-License-Identifier: Apache-2.0

// Package kernel watches the CPUs of workers with eBPF: who has them when a worker has not. Events are summed up in the kernel;
// only long gaps are told one by one.
//
// The object that is loaded is committed, so that only who changes bpf/*.c needs clang and libbpf's headers: `make bpf`.
package kernel

//go:generate go tool bpf2go -cc clang -strip llvm-strip -target bpfel -cflags "-O2 -g -Wall -Wno-missing-declarations -Werror -I/usr/include/x86_64-linux-gnu" -type key -type sum -type worker -type gap -type cpu workers bpf/workers.bpf.c
