// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"context"
)

// partition the machine. back puts it as it was.
func (l *lane) partition(ctx context.Context) (back func() error, err error) {
	return l.partitionByHand(ctx)
}
