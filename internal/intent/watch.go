// SPDX-License-Identifier: Apache-2.0
package intent

import (
	"context"
	"fmt"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a directory must be still before it is read again, so that a file is complete.
const settle = 20 * time.Millisecond

// Watch sends when files of a directory have changed, until ctx ends.
func Watch(ctx context.Context, dir string) (<-chan struct{}, error) {
	w, err := fsnotify.NewWatcher()
	if err == nil {
		err = w.Add(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("intent directory %s: %w", dir, err)
	}
	changed := make(chan struct{}, 1)
	go func() {
		defer w.Close()
		var still <-chan time.Time
		for {
			select {
			case <-ctx.Done():
				return
			case <-w.Events:
				still = time.After(settle)
			case <-w.Errors: // too many at once: read all
				still = time.After(settle)
			case <-still:
				still = nil
				select {
				case changed <- struct{}{}:
				default:
				}
			}
		}
	}()
	return changed, nil
}
