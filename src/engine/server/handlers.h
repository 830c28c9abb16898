// The handlers, one for each type of request. A handler replies, parks the request, or throws: Malformed drops the
// connection, any other exception becomes the error reply of the request.
#pragma once

#include "engine/server/io_thread.h"

namespace pgwarp
{

void handle_request(IoThread& thread, const Request& request);

void handle_hello(IoThread& thread, const Request& request);
void handle_status(IoThread& thread, const Request& request);
void handle_release(IoThread& thread, const Request& request);
void handle_lease_buffer(IoThread& thread, const Request& request);
void handle_return_buffer(IoThread& thread, const Request& request);

void handle_search(IoThread& thread, const Request& request);
void handle_search_indexes(IoThread& thread, const Request& request);

// Acts out an injected fault. True when it has parked the request.
bool inject_fault(IoThread& thread, const Request& request, Fault fault);

void handle_load_begin(IoThread& thread, const Request& request);
void handle_load_chunk(IoThread& thread, const Request& request);
void handle_load_prepare(IoThread& thread, const Request& request);
void handle_load_end(IoThread& thread, const Request& request);
void handle_load_delta(IoThread& thread, const Request& request);
void handle_load_tombstones(IoThread& thread, const Request& request);
void handle_load_tids(IoThread& thread, const Request& request);

void handle_build_begin(IoThread& thread, const Request& request);
void handle_build_rows(IoThread& thread, const Request& request);
void handle_build_array(IoThread& thread, const Request& request);
void handle_build_run(IoThread& thread, const Request& request);
void handle_build_read(IoThread& thread, const Request& request);
void handle_build_end(IoThread& thread, const Request& request);

}  // namespace pgwarp
