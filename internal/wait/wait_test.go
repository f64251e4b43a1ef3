// SPDX-License-Identifier: Apache-2.0
package wait

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestUntil(t *testing.T) {
	calls := 0
	count := func(last int, err error) func() (bool, error) {
		calls = 0
		return func() (bool, error) {
			if calls++; calls == last {
				return err == nil, err
			}
			return false, nil
		}
	}
	ctx := context.Background()
	if err := Until(ctx, time.Hour, count(1, nil)); err != nil || calls != 1 {
		t.Error("done at once:", calls, err)
	}
	if err := Until(ctx, time.Microsecond, count(3, nil)); err != nil || calls != 3 {
		t.Error("done at the third call:", calls, err)
	}
	failed := errors.New("failed")
	if err := Until(ctx, time.Microsecond, count(2, failed)); !errors.Is(err, failed) || calls != 2 {
		t.Error("failed at the second call:", calls, err)
	}
	if err := Patiently(ctx, count(2, failed)); !errors.Is(err, failed) || calls != 2 {
		t.Error("failed at the second call:", calls, err)
	}
	late := errors.New("late")
	// timed: it is to expire
	ctx, cancel := context.WithTimeoutCause(ctx, 5*time.Millisecond, late)
	defer cancel()
	if err := Until(ctx, time.Millisecond, count(-1, nil)); !errors.Is(err, late) || calls < 1 {
		t.Error("never done:", calls, err)
	}
	if err := For(ctx, time.Hour); !errors.Is(err, late) {
		t.Error(err)
	}
	if err := For(context.Background(), time.Microsecond); err != nil {
		t.Error(err)
	}
}
