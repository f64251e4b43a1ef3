// SPDX-License-Identifier: Apache-2.0

// Package input has the one error of input that is wrong: what, where, and what would be right, in one line. Programs end
// with status 2 because of it.
package input

import (
	"errors"
	"fmt"
	"math/big"
)

// Error is a value that somebody gave and that cannot be: a flag, a line of a file, a setting of this machine.
type Error struct {
	Field string // what is wrong: "--cpu", "plan.yaml:7: forwarding"
	Text  string // why
	Valid string // what would be right; may be empty
}

func (e *Error) Error() string {
	if e.Valid == "" {
		return e.Field + ": " + e.Text
	}
	return e.Field + ": " + e.Text + "; valid: " + e.Valid
}

// Errorf makes an Error.
func Errorf(field, valid, format string, args ...any) error {
	return &Error{field, fmt.Sprintf(format, args...), valid}
}

// NotNumber makes the Error of text that is not one of the numbers that valid describes.
func NotNumber(field, valid, text string) error {
	if _, ok := new(big.Int).SetString(text, 10); ok {
		return Errorf(field, valid, "'%s' is out of range", text)
	}
	return Errorf(field, valid, "'%s' is not a number", text)
}

// Is says whether err is about what was given rather than about what was done with it.
func Is(err error) bool {
	var e *Error
	return errors.As(err, &e)
}
