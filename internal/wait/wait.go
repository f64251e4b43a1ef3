// SPDX-License-Identifier: Apache-2.0

// Package wait polls for conditions that send no notification.
package wait

import (
	"context"
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
