// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/state"
)

const (
	nodePage  = "corelane-node.5"
	nodeIntro = "The file is YAML or JSON: a mapping of lists of objects, which are all optional, and the mapping " +
		"settings. corelane apply -f makes a running node match it, corelane export writes it from one, and corelane " +
		"export --schema writes its JSON Schema."
	nodeValues = "Field names and values are those of the API. A number outside the range given here is refused."
)

// nodeSchema is a part of the JSON Schema of the node file.
type nodeSchema struct {
	Ref         string                `json:"$ref"`
	Defs        map[string]nodeSchema `json:"$defs"`
	Properties  map[string]nodeSchema `json:"properties"`
	Items       *nodeSchema           `json:"items"`
	Type        any                   `json:"type"`
	Enum        []string              `json:"enum"`
	Description string                `json:"description"`
	Required    []string              `json:"required"`
	OneOf       []nodeSchema          `json:"oneOf"`
	Minimum     *uint64               `json:"minimum"`
	Maximum     *uint64               `json:"maximum"`
	MultipleOf  uint64                `json:"multipleOf"`
	MaxLength   uint64                `json:"maxLength"`
	MaxItems    uint64                `json:"maxItems"`
	Default     any                   `json:"default"`
}

// nodeManual writes the page of the node file from the schema that the file is checked with. Fields that are flags of
// `corelane NOUN add`, too, have the help of these.
func nodeManual(root *cobra.Command) ([]byte, error) {
	text, err := state.Schema()
	if err != nil {
		return nil, err
	}
	var s nodeSchema
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&s); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, ".TH \"CORELANE-NODE\" \"5\" \"\" \"Corelane %s\" \"Corelane\"\n.nh\n.ad l\n", roff(Version))
	b.WriteString(".SH NAME\ncorelane-node \\- the file of a node\n.SH DESCRIPTION\n")
	fmt.Fprintf(&b, "%s\n.PP\n%s\n.SH TOP LEVEL\n", roff(nodeIntro), roff(nodeValues))
	for _, name := range sortedKeys(s.Properties) {
		p := s.Properties[name]
		item(&b, name, p.kind(), "")
	}
	for _, name := range sortedKeys(s.Defs) {
		def := s.Defs[name]
		if len(def.Properties) > 0 {
			fmt.Fprintf(&b, ".SH %s\n", strings.ToUpper(name))
			def.fields(&b, helpOf(root, name))
		}
	}
	fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", roff("corelane-apply(1), corelane-export(1), corelaned(8)"))
	return b.Bytes(), nil
}

func (d *nodeSchema) fields(b *bytes.Buffer, help func(field string) string) {
	var choice []string
	for _, o := range d.OneOf {
		choice = append(choice, o.Required...)
	}
	if choice != nil {
		fmt.Fprintf(b, ".PP\n%s\n", roff("Exactly one of these is given: "+strings.Join(choice, ", ")+"."))
	}
	for _, name := range sortedKeys(d.Properties) {
		p := d.Properties[name]
		kind := p.kind()
		if slices.Contains(d.Required, name) {
			kind += ", required"
		}
		item(b, name, kind, help(name))
	}
}

func item(b *bytes.Buffer, name, kind, help string) {
	fmt.Fprintf(b, ".TP\n\\fB%s\\fP\n%s\n", roff(name), roff(kind))
	if help != "" {
		fmt.Fprintf(b, ".br\n%s\n", roff(help))
	}
}

// kind says which values are valid.
func (s *nodeSchema) kind() string {
	parts := []string{s.value()}
	if s.Items != nil {
		parts[0] = "list of " + s.Items.kind()
	}
	if s.MaxItems > 0 {
		parts = append(parts, fmt.Sprintf("up to %d", s.MaxItems))
	}
	if s.Default != nil {
		parts = append(parts, fmt.Sprintf("default %v", s.Default))
	}
	return strings.Join(parts, ", ")
}

func (s *nodeSchema) value() string {
	switch {
	case s.Ref != "":
		return strings.ToUpper(s.Ref[strings.LastIndex(s.Ref, "/")+1:])
	case s.Enum != nil:
		return "one of " + strings.Join(s.Enum, ", ")
	case s.Type == "boolean":
		return "true or false"
	case s.Description != "":
		return s.Description
	case s.MaxLength > 0:
		return fmt.Sprintf("text of up to %d bytes", s.MaxLength)
	case s.Minimum == nil || s.Maximum == nil:
		return "text"
	case s.MultipleOf > 0:
		return fmt.Sprintf("%d to %d, a multiple of %d", *s.Minimum, *s.Maximum, s.MultipleOf)
	}
	return fmt.Sprintf("%d to %d", *s.Minimum, *s.Maximum)
}

// helpOf returns the help of the flags that set the fields of a message.
func helpOf(root *cobra.Command, message string) func(field string) string {
	cmd, _, err := root.Find([]string{strings.ToLower(message), "add"})
	return func(field string) string {
		if err == nil {
			if f := cmd.NonInheritedFlags().Lookup(strings.ReplaceAll(field, "_", "-")); f != nil {
				return f.Usage
			}
		}
		return ""
	}
}

// roff escapes what has a meaning in a manual page.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}

func sortedKeys(m map[string]nodeSchema) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
