// The socket to pgwarp-engine and the frames on it. Waits obey interrupts; nothing here reads messages.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "datatype/timestamp.h"
#include "storage/latch.h"
}

#include "postgres/client/request_result.h"

namespace pgwarp
{

struct EngineSocket {
    pgsocket descriptor;    // PGINVALID_SOCKET = closed
    int passed_descriptor;  // came with bytes and was not taken yet; -1 = none
    WaitEventSet* events;   // latch, postmaster death and the socket
    int socket_event;       // position of the socket in it
    uint32 watched;         // events of the socket that are waited for
    char* received;         // the frame given out last, then the bytes after it
    uint32 capacity;
    uint32 filled;
    uint32 given;         // bytes of the frame given out last
    uint32 poll_hint_ns;  // how long the next wait for bytes polls before it blocks
};

enum class SendResult { sent, nothing_sent, lost };

// no_descriptors: the process has too few file descriptors left for a connection.
enum class ConnectResult { connected, nobody, no_descriptors };

// Tries once to connect a closed socket to the engine in the data directory, and checks that our own user listens
// there. The socket is closed again unless it is connected, also when an error is raised.
ConnectResult connect_socket(EngineSocket* socket);
// Whether an engine of our own user listens there.
bool engine_answers();
// Closes as much of the socket as is open.
void close_socket(EngineSocket* socket);

// Sends a header and the pieces. nothing_sent: the peer was gone before it could see a byte.
SendResult send_frame(EngineSocket* socket, const MessageHeader& header, const RequestPiece* pieces, int piece_count);

// The same without waiting; false unless the socket took it all.
bool send_frame_at_once(EngineSocket* socket, const MessageHeader& header, const RequestPiece& piece);

// Receives the next whole frame; false when the connection is lost or `deadline` (0 = none) has passed. The payload, at
// socket->received behind the header, stays until the next call. With take_descriptor a descriptor that comes along is
// kept for take_passed_descriptor(); else it is not received.
bool receive_frame(EngineSocket* socket, MessageHeader* header, TimestampTz deadline, bool take_descriptor);
// The descriptor that came with the last frame, now the caller's; -1 when none did.
int take_passed_descriptor(EngineSocket* socket);

// Sleeps a little, obeying interrupts.
void sleep_interruptibly(long milliseconds);

}  // namespace pgwarp
