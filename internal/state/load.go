// SPDX-License-Identifier: Apache-2.0
package state

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// Error is one fault of a file.
type Error struct {
	File      string
	Line, Col int
	Field     string // "ports[2].mtu"
	What      string
	Valid     string
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s:%d:%d: ", e.File, e.Line, e.Col)
	if e.Field != "" {
		text += e.Field + ": "
	}
	text += e.What
	if e.Valid != "" {
		text += "; valid: " + e.Valid
	}
	return text
}

// Errors are the faults of a file in the order of its lines, at most maxErrors.
type Errors []*Error

const maxErrors = 20

func (list Errors) Error() string {
	lines := make([]string, len(list))
	for i, e := range list {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// LoadFile reads a state from a file.
func LoadFile(path string) (*State, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Load(path, src)
}

// Load reads a state from text. Its errors are of type Errors and have the file name that is given.
func Load(name string, src []byte) (*State, error) {
	l := newLoader(name)
	secs, ok := splitSections(src)
	if isEmpty(src) { // such as the output of an export that failed
		l.fail(position{1, 1}, "", "at least one section; 'vrfs: []' alone deletes everything", "the file is empty")
	} else if ok {
		l.sections(secs)
	} else {
		l.whole(src)
	}
	l.finish()
	if len(l.errs) > 0 {
		slices.SortStableFunc(l.errs, func(a, b *Error) int {
			return (a.Line-b.Line)*10000 + a.Col - b.Col
		})
		return nil, l.errs
	}
	l.state.Sort()
	return l.state, nil
}

// isEmpty tells whether a file has nothing but comments.
func isEmpty(src []byte) bool {
	for len(src) > 0 {
		var line []byte
		if line, src = cutLine(src); !isBlank(line) && string(line) != "---" {
			return false
		}
	}
	return true
}

type position struct{ line, col int }

// loader collects a state and the faults of its file.
type loader struct {
	file    string
	state   *State
	errs    Errors
	line    int                            // number of lines before the piece that is being read
	index   int                            // of the object within its section
	defs    map[string]map[string]position // objects that exist, by section and key
	refs    []pending                      // references to look up when the whole file has been read
	inuse   map[string]position            // devices
	kinds   map[string]string              // of next hops
	broken  []pending                      // objects with faults of their own: what names them is right
	members []pending                      // of groups
	vrfs    map[string]string              // for plainRoute: VRF names by their text
	ids     map[string]uint32              // and next hops by their text
	own     map[Route]string               // ports by the prefixes that they bring (only Vrf and Prefix)
}

type pending struct {
	section, key, field string
	at                  position
}

func newLoader(file string) *loader {
	l := &loader{file: file, state: &State{}, defs: map[string]map[string]position{}, inuse: map[string]position{},
		kinds: map[string]string{}}
	for _, s := range sections {
		l.defs[s] = map[string]position{}
	}
	return l
}

func (l *loader) full() bool { return len(l.errs) >= maxErrors }

func (l *loader) fail(at position, field, valid, what string, args ...any) {
	if !l.full() {
		l.errs = append(l.errs, &Error{l.file, at.line, at.col, field, fmt.Sprintf(what, args...), valid})
	}
}

func (l *loader) at(n *yaml.Node) position { return position{n.Line + l.line, n.Column} }

// sections reads the sections of a file, in the order of the table of nouns.
func (l *loader) sections(secs []section) {
	seen := map[string]int{}
	for _, s := range secs {
		if line, twice := seen[s.key]; twice {
			l.fail(position{s.line, 1}, s.key, "", "already given in line %d", line)
		}
		seen[s.key] = s.line
		if !slices.Contains(sections, s.key) {
			l.fail(position{s.line, 1}, s.key, strings.Join(sections, " "), "unknown key")
		}
	}
	for _, key := range sections {
		for _, s := range secs {
			if s.key == key && !l.full() {
				l.section(s)
			}
		}
	}
}

func (l *loader) section(s section) {
	pieces, ok := s.items()
	if !ok {
		if root := l.parse(s.piece); root != nil {
			l.pairs(root)
		}
		return
	}
	l.index = 0
	l.touch(s.key)
	if s.key == "routes" {
		l.prepareRoutes()
	}
	for _, p := range pieces {
		if s.key == "routes" {
			if routes, ok := l.plainRoutes(p); ok {
				l.state.Routes = append(l.state.Routes, routes...)
				l.index += len(routes)
				continue
			}
		}
		root := l.parse(p)
		if root == nil {
			return
		}
		l.list(s.key, root)
		if l.full() {
			return
		}
	}
}

// whole reads a file that cannot be split into sections.
func (l *loader) whole(src []byte) {
	root := l.parse(piece{src, 1})
	if root == nil {
		return
	}
	l.pairs(root)
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// parse returns the root node of a piece, nil if it is empty or is not valid YAML.
func (l *loader) parse(p piece) *yaml.Node {
	l.line = p.line - 1
	dec := yaml.NewDecoder(strings.NewReader(string(p.text)))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	if err == io.EOF {
		return nil
	}
	if err == nil {
		if err = dec.Decode(&more); err == io.EOF {
			return doc.Content[0]
		}
		if err == nil {
			l.fail(l.at(&more), "", "one document", "the file has a second document")
			return nil
		}
	}
	line, text := 1, err.Error()
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		text = text[len(m[0]):]
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = n
		}
	}
	l.fail(position{line + l.line, 1}, "", "", "not YAML: %s", text)
	return nil
}

// pairs reads a mapping of sections.
func (l *loader) pairs(root *yaml.Node) {
	if root.Kind != yaml.MappingNode {
		l.fail(l.at(root), "", "a mapping with "+strings.Join(sections, " "), "not a mapping")
		return
	}
	nodes := map[string]*yaml.Node{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		k := root.Content[i]
		switch _, twice := nodes[k.Value]; {
		case !slices.Contains(sections, k.Value):
			l.fail(l.at(k), k.Value, strings.Join(sections, " "), "unknown key")
		case twice:
			l.fail(l.at(k), k.Value, "", "already given in line %d", nodes[k.Value].Line+l.line)
		default:
			nodes[k.Value] = root.Content[i+1]
		}
	}
	for _, key := range sections {
		if n := nodes[key]; n != nil {
			l.index = 0
			l.list(key, n)
		}
	}
}

// touch notes that a section exists, even if it is empty.
func (l *loader) touch(key string) {
	if key == "workers" && l.state.Workers == nil {
		l.state.Workers = []*apiv1.Worker{} // no workers; nil would mean that the section is not given
	}
}

// list reads the objects of a section.
func (l *loader) list(key string, n *yaml.Node) {
	l.touch(key)
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if key == "settings" {
		l.object(key, key, n)
		return
	}
	if n.Kind != yaml.SequenceNode {
		l.fail(l.at(n), key, "a list: each item starts with \"- \"", "not a list")
		return
	}
	for _, item := range n.Content {
		if l.full() {
			return
		}
		l.object(key, fmt.Sprintf("%s[%d]", key, l.index), item)
		l.index++
	}
}

// IsInput says whether an error is a fault of a file, not of a node.
func IsInput(err error) bool {
	var list Errors
	return errors.As(err, &list)
}
