// SPDX-License-Identifier: Apache-2.0
package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/containerd/ttrpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// Error is a request that the daemon refused. Nothing has been changed.
type Error struct {
	Field   string // path of the wrong field; empty if the error is not about one
	Value   string // the given value
	Valid   string // what is valid
	Message string // the whole sentence
	Index   uint32 // position in a repeated request
	Code    codes.Code
}

func (e *Error) Error() string {
	text := e.Message
	if text == "" {
		text = fmt.Sprintf("%s '%s': refused", e.Field, e.Value)
	}
	if e.Field != "" && !strings.HasPrefix(text, e.Field) {
		text = e.Field + ": " + text
	}
	if e.Valid != "" && !strings.Contains(text, e.Valid) {
		text += "; valid: " + e.Valid
	}
	return text
}

// Unavailable means that no daemon answers, or that it has gone.
type Unavailable struct {
	Socket string
	Err    error
}

func (e *Unavailable) Error() string {
	switch {
	case errors.Is(e.Err, fs.ErrPermission):
		return fmt.Sprintf("no permission to talk to corelaned on %s: root and the members of its groups have it, "+
			"usually %s, %s and %s", e.Socket, Groups[apiv1.Role_ROLE_READ], Groups[apiv1.Role_ROLE_OPERATE],
			Groups[apiv1.Role_ROLE_ADMINISTER])
	case errors.Is(e.Err, ttrpc.ErrClosed):
		return fmt.Sprintf("corelaned on %s closed the connection: see its log", e.Socket)
	case errors.Is(e.Err, fs.ErrNotExist), errors.Is(e.Err, syscall.ECONNREFUSED):
		return fmt.Sprintf("corelaned does not answer on %s: is it running? Another socket: --socket or "+
			"CORELANE_SOCKET", e.Socket)
	}
	return fmt.Sprintf("corelaned does not answer on %s: %v", e.Socket, e.Err)
}

func (e *Unavailable) Unwrap() error { return e.Err }

// convert turns what ttrpc returns into *Error, *Unavailable or, for a context that ended here, its own error.
func convert(ctx context.Context, socket string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	st, ok := status.FromError(err)
	if !ok {
		return &Unavailable{socket, err}
	}
	for _, d := range st.Details() {
		if e, ok := d.(*apiv1.Error); ok {
			return &Error{e.Field, e.Value, e.Valid, e.Message, e.Index, st.Code()}
		}
	}
	return &Error{Message: st.Message(), Code: st.Code()}
}
