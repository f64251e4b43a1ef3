// SPDX-License-Identifier: Apache-2.0
package state

import (
	"bytes"
	"unicode/utf8"
)

// A YAML tree of a million routes takes gigabytes, so a file is split into pieces that are parsed one after the other.
// This works for the usual layout: top-level keys in column 1, items that start with "-". A file in any other valid
// layout, such as JSON, is parsed as a whole.

const chunkBytes = 64 << 10

type piece struct {
	text []byte
	line int // number of its first line, from 1
}

// section of the file: its key, and the piece that starts with the key's line.
type section struct {
	key string
	piece
}

// splitSections splits a file at its top-level keys. ok is false if it has another layout.
func splitSections(src []byte) (list []section, ok bool) {
	if !plainText(src) {
		return nil, false
	}
	start, line, begun := 0, 0, false
	for rest := src; len(rest) > 0; {
		line++
		text, next := cutLine(rest)
		offset := len(src) - len(rest)
		rest = next
		switch {
		case isBlank(text), len(list) > 0 && (text[0] == ' ' || isItem(text)):
			continue
		case bytes.Equal(text, []byte("---")) && len(list) == 0 && !begun:
			begun = true
			continue
		}
		key := topKey(text)
		if key == "" {
			return nil, false
		}
		if len(list) > 0 {
			list[len(list)-1].text = src[start:offset]
		}
		start = offset
		list = append(list, section{key: key, piece: piece{line: line}})
	}
	if len(list) == 0 {
		return nil, false
	}
	list[len(list)-1].text = src[start:]
	return list, true
}

// items splits a section into pieces, each of which is a YAML sequence. ok is false if it is not a block sequence.
func (s section) items() (list []piece, ok bool) {
	first, rest := cutLine(s.text)
	if topKey(first) == "" || !isBlank(first[len(s.key)+1:]) {
		return nil, false
	}
	indent, line, start, startLine := -1, s.line, 0, s.line+1
	body := rest
	for len(rest) > 0 {
		line++
		text, next := cutLine(rest)
		offset := len(body) - len(rest)
		rest = next
		trimmed := bytes.TrimLeft(text, " ")
		if isBlank(trimmed) {
			continue
		}
		depth := len(text) - len(trimmed)
		if indent < 0 {
			if !isItem(trimmed) {
				return nil, false
			}
			indent = depth
		}
		if depth < indent || trimmed[0] == '\t' {
			return nil, false
		}
		if depth == indent && isItem(trimmed) && offset-start >= chunkBytes {
			list = append(list, piece{body[start:offset], startLine})
			start, startLine = offset, line
		}
	}
	if indent < 0 {
		return nil, false
	}
	return append(list, piece{body[start:], startLine}), true
}

func cutLine(b []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(b, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), rest
}

// isBlank says whether a line has only spaces and a comment.
func isBlank(line []byte) bool {
	t := bytes.TrimLeft(line, " ")
	return len(t) == 0 || t[0] == '#'
}

func isItem(t []byte) bool {
	return len(t) > 0 && t[0] == '-' && (len(t) == 1 || t[1] == ' ')
}

// topKey returns the plain key at the begin of a line, or "".
func topKey(line []byte) string {
	key, rest, found := bytes.Cut(line, []byte(":"))
	if !found || len(key) == 0 || len(rest) > 0 && rest[0] != ' ' {
		return ""
	}
	for _, c := range key {
		if (c < 'a' || c > 'z') && c != '_' {
			return ""
		}
	}
	return string(key)
}

// plainText says whether a file has no character that YAML refuses, and no line ends other than \n and \r\n.
func plainText(src []byte) bool {
	for i := 0; i < len(src); {
		c, size := rune(src[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRune(src[i:])
		}
		i += size
		switch {
		case c == '\n', c == '\t', c >= ' ' && c <= '~', c >= 0xa0 && c < 0x2028, c > 0x2029 && c < 0xd800:
		case c == '\r' && i < len(src) && src[i] == '\n':
		case c >= 0x10000:
		default:
			return false
		}
	}
	return true
}
