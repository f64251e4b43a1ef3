// SPDX-License-Identifier: Apache-2.0
package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Limits of a scenario.
const (
	minFrame    = 64
	maxFrame    = 9000
	maxSizes    = 64
	maxFlows    = 1 << 24
	maxNewFlows = 10_000_000
	maxRules    = 60_000
	maxRoutes   = 1000000 // as many fit into a message to the generator
	maxTenants  = 64
	maxWorkers  = 16 // rings of a memif
	probeSize   = 16 // of the generator, behind the headers
)

// IMIX is the mix of frame sizes that the field calls so: 7 small ones, 4 of 570 bytes, one of 1518.
var IMIX = []int{64, 570, 64, 64, 570, 64, 64, 570, 64, 64, 570, 1518}

// ParseSizes reads frame sizes as people type them: "64", "imix", "64,1500".
func ParseSizes(text string) ([]int, error) {
	if text == "imix" {
		return slices.Clone(IMIX), nil
	}
	var sizes []int
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("frame size '%s' is not a number; valid: %d to %d, several of them as in 64,1500, "+
				"or imix", word, minFrame, maxFrame)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

// Validate refuses what cannot be built.
func (s *Scenario) Validate() error {
	for _, err := range []error{
		s.validatePath(),
		s.validateSizes(),
		inRange("flows", s.Flows, 1, maxFlows),
		inRange("rules", s.Rules, 0, maxRules),
		inRange("new flows per second", s.NewFlows, 0, maxNewFlows),
		inRange("routes", s.Routes, 1, maxRoutes),
		inRange("tenants", s.Tenants, 1, maxTenants),
		inRange("workers", s.Workers, 1, maxWorkers),
	} {
		if err != nil {
			return err
		}
	}
	if s.Rules > 0 && !s.Stateful {
		return fmt.Errorf("%d rules, but nothing that remembers what they said; valid: 0, or stateful", s.Rules)
	}
	if s.Flows < s.Tenants {
		return fmt.Errorf("%d flows do not reach %d tenants; valid: at least one flow for each tenant", s.Flows,
			s.Tenants)
	}
	if s.IPv6 && s.Routes > 1 {
		return fmt.Errorf("%d routes of IPv6, but the generator varies the last 32 bits of addresses, which /64 "+
			"prefixes have in common; valid: 1", s.Routes)
	}
	if s.Bridged && s.Routes > 1 {
		return fmt.Errorf("%d routes, but %s looks up MAC addresses; valid: 1", s.Routes, s.Name)
	}
	return nil
}

func (s *Scenario) validatePath() error {
	tunnel := s.Overlay != Plain
	switch {
	case tunnel && titles[s.Overlay] == "":
		return fmt.Errorf("overlay '%s' is unknown; valid: %s", s.Overlay, overlayNames())
	case s.Direction != TenantToWire && s.Direction != WireToTenant && s.Direction != TenantToTenant:
		return fmt.Errorf("direction '%s' is unknown; valid: %s, %s, %s", s.Direction, TenantToWire, WireToTenant,
			TenantToTenant)
	case tunnel && s.Direction == TenantToTenant:
		return fmt.Errorf("%s has no wire that %s could be on", TenantToTenant, titles[s.Overlay])
	case !tunnel && s.Direction != TenantToTenant:
		return fmt.Errorf("%s needs an overlay; valid: %s", s.Direction, overlayNames())
	case s.Underlay6 && !tunnel:
		return errors.New("an IPv6 underlay, but no tunnel that it would carry")
	}
	return nil
}

func (s *Scenario) validateSizes() error {
	if len(s.Sizes) == 0 || len(s.Sizes) > maxSizes {
		return fmt.Errorf("%d frame sizes; valid: 1 to %d of them", len(s.Sizes), maxSizes)
	}
	for _, size := range s.Sizes {
		if err := inRange("frame size", size, minFrame, maxFrame); err != nil {
			return err
		}
		if need := ethernetSize + ip6Size + udpSize + probeSize; s.IPv6 && size < need {
			return fmt.Errorf("frame size %d has no room for IPv6 headers and the generator's probe; valid: %d to %d",
				size, need, maxFrame)
		}
	}
	return nil
}

func inRange(what string, n, low, high int) error {
	if n < low || n > high {
		return fmt.Errorf("%s %d is out of range; valid: %d to %d", what, n, low, high)
	}
	return nil
}
