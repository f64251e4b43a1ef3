// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/input"
)

// changed lists the fields whose flags were given, which a Set request changes.
func changed(cmd *cobra.Command, flags []fieldFlag) []string {
	var fields []string
	for _, f := range flags {
		if cmd.Flags().Changed(f.flag) {
			fields = append(fields, f.fieldName())
		}
	}
	return fields
}

// needFields refuses a Set that would change nothing.
func needFields(cmd *cobra.Command, flags []fieldFlag) ([]string, error) {
	fields := changed(cmd, flags)
	if len(fields) == 0 {
		var names []string
		for _, f := range flags {
			names = append(names, "--"+f.flag)
		}
		return nil, input.Errorf("flags", fewWords(cmd, names, " "), "missing, so there is nothing to change")
	}
	return fields, nil
}

func parseNumber(field, text string, least, most uint64) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, input.NotNumber(field, fmt.Sprintf("%d to %d", least, most), text)
	}
	return n, nil
}

func parseID(field, text string, least, most uint32) (uint32, error) {
	n, err := parseNumber(field, text, uint64(least), uint64(most))
	return uint32(n), err
}
