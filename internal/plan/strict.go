// SPDX-License-Identifier: Apache-2.0
package plan

import (
	"bytes"
	"encoding"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/corelane/corelane/internal/input"
)

// maxFile is the size limit of a file in bytes, more than the plan of the largest machine needs.
const maxFile = 16 << 20

// strict decodes files that people write: YAML, and JSON as a subset of it. Each error names its line.
type strict struct {
	name  string
	lines map[string]int // line of each value by its path, "cpus[3]"
	f     faults
}

// decode fills in a struct from the text of a file.
func (s *strict) decode(text []byte, into any) error {
	s.lines = map[string]int{}
	if len(text) > maxFile {
		return input.Errorf(s.name, fmt.Sprintf("at most %d MiB", maxFile>>20), "the file is too large (%d bytes)",
			len(text))
	}
	// JSON may be indented with tabs, YAML may not.
	dec := yaml.NewDecoder(bytes.NewReader(bytes.ReplaceAll(text, []byte("\t"), []byte(" "))))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err == io.EOF {
		return input.Errorf(s.name, "", "the file is empty")
	} else if err != nil {
		return s.syntax(err)
	}
	if err := dec.Decode(&more); err != io.EOF {
		return input.Errorf(s.name, "one document", "there is more than one document")
	}
	s.value(doc.Content[0], reflect.ValueOf(into).Elem(), "")
	return s.f.err()
}

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// syntax converts the parser's error.
func (s *strict) syntax(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if at := yamlLine.FindStringSubmatch(text); at != nil {
		return input.Errorf(s.name+":"+at[1], "", "%s", text[len(at[0]):])
	}
	return input.Errorf(s.name, "", "%s", text)
}

// field returns the name of a value with its line.
func (s *strict) field(path string) string {
	if path == "" {
		return s.name
	}
	return fmt.Sprintf("%s:%d: %s", s.name, s.lines[path], path)
}

func (s *strict) wrong(path, valid, format string, args ...any) {
	s.f.add(s.field(path), valid, format, args...)
}

func (s *strict) value(n *yaml.Node, to reflect.Value, path string) {
	s.lines[path] = n.Line
	text, isText := to.Addr().Interface().(encoding.TextUnmarshaler)
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		s.wrong(path, "the value itself", "anchors and aliases are not supported")
	case isText && n.Kind == yaml.ScalarNode:
		if err := text.UnmarshalText([]byte(n.Value)); err != nil {
			s.wrong(path, "", "%v", err)
		}
	case isText:
		s.wrong(path, `a list of CPUs, "0,5-7"`, "%s", kindText(n))
	case to.Kind() == reflect.Struct:
		s.object(n, to, path)
	case to.Kind() == reflect.Slice:
		s.list(n, to, path)
	default:
		s.scalar(n, to, path)
	}
}

func (s *strict) object(n *yaml.Node, to reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		s.wrong(path, "keys with values: "+strings.Join(keysOf(to.Type()), ", "), "%s", kindText(n))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		below := strings.TrimPrefix(path+"."+key.Value, ".")
		s.lines[below] = key.Line
		at := fieldOf(to.Type(), key.Value)
		switch {
		case at < 0:
			s.wrong(below, strings.Join(keysOf(to.Type()), ", "), "unknown key")
		case seen[key.Value]:
			s.wrong(below, "each key once", "the key occurs twice")
		default:
			s.value(n.Content[i+1], to.Field(at), below)
		}
		seen[key.Value] = true
	}
}

// keysOf returns the keys of a struct, which are its JSON keys.
func keysOf(t reflect.Type) []string {
	var keys []string
	for i := range t.NumField() {
		key, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		keys = append(keys, key)
	}
	return keys
}

func fieldOf(t reflect.Type, key string) int {
	for i, k := range keysOf(t) {
		if k == key {
			return i
		}
	}
	return -1
}

func (s *strict) list(n *yaml.Node, to reflect.Value, path string) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return
	case n.Kind != yaml.SequenceNode:
		s.wrong(path, "a list", "%s", kindText(n))
		return
	}
	to.Set(reflect.MakeSlice(to.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		s.value(item, to.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
}

func (s *strict) scalar(n *yaml.Node, to reflect.Value, path string) {
	if n.Kind != yaml.ScalarNode {
		s.wrong(path, kindName(to), "%s", kindText(n))
		return
	}
	switch to.Kind() {
	case reflect.Int:
		v, err := strconv.ParseInt(n.Value, 10, 64)
		if err != nil || v > 1<<31 || v < -1<<31 {
			s.wrong(path, "a whole number", "'%s' is not a whole number", n.Value)
			return
		}
		to.SetInt(v)
	case reflect.Bool:
		if n.Value != "true" && n.Value != "false" {
			s.wrong(path, "true, false", "'%s' is neither true nor false", n.Value)
			return
		}
		to.SetBool(n.Value == "true")
	case reflect.String:
		to.SetString(n.Value)
	}
}

func kindName(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Int:
		return "a whole number"
	case reflect.Bool:
		return "true, false"
	}
	return "a text"
}

func kindText(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "is keys with values"
	case yaml.SequenceNode:
		return "is a list"
	}
	return fmt.Sprintf("'%s' is a single value", n.Value)
}
