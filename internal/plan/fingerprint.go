// SPDX-License-Identifier: Apache-2.0
package plan

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/corelane/corelane/internal/topology"
)

func fingerprint(m *topology.Machine) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(Layout(m), "\n"))))[:16]
}
