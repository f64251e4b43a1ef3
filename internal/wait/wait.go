// SPDX-License-Identifier: Apache-2.0

// Package wait polls for conditions that send no notification.
package wait

import (
	"context"
	"errors"
	"time"
)

// Until calls f repeatedly, with a pause between two calls, until it is done or fails. When ctx is over first, the
// error is its cause.
func Until(ctx context.Context, pause time.Duration, f func() (done bool, err error)) error {
	for {
		if done, err := f(); done || err != nil {
			return err
		}
		if err := For(ctx, pause); err != nil {
			return err
		}
	}
}

// Patience is how long a test waits for what must happen. It is no limit on how long something may take: the machine
// may be busy, and kernels of virtual machines have been seen to leave threads that are ready without their CPU for a
// minute.
const Patience = 3 * time.Minute

// Patiently is Until with the patience of a test.
func Patiently(ctx context.Context, f func() (done bool, err error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Patience, errors.New("it has not happened"))
	defer cancel()
	return Until(ctx, 5*time.Millisecond, f)
}

// For waits for a time. When ctx is over first, the error is its cause.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
