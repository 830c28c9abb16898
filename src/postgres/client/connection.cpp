#include "postgres/client/connection.h"

#include "postgres/client/engine_socket.h"
#include "postgres/client/launcher.h"
#include "postgres/client/message_fault.h"
#include "postgres/client/shared_slot.h"
#include "postgres/settings.h"

extern "C" {
#include "storage/ipc.h"
#include "utils/timestamp.h"
}

namespace pgwarp
{

namespace
{

constexpr int64 availability_lifetime_us = USECS_PER_SEC;
constexpr long longest_connect_delay_ms = 20;
constexpr int64 join_patience_us = 100 * INT64CONST(1000);
constexpr int64 join_rest_us = 30 * USECS_PER_SEC;  // after a failure
constexpr int most_version_mismatches = 2;

struct Connection {
    EngineSocket socket;
    uint64 epoch;
    uint64 next_request;
    uint64 passed_over;  // latest request whose reply was skipped while another reply was awaited
    bool exit_registered;
};

Connection connection = {{PGINVALID_SOCKET, -1, nullptr, 0, 0, nullptr, 0, 0, 0, 0}, 0, 1, 0, false};

void leave_engine(int, Datum)
{
    release_retry_turn();
}

RequestResult result_of(RequestOutcome outcome)
{
    return {outcome, {MessageType::error, nullptr, 0, -1}};
}

// Parses the frame just received. The caller owns a descriptor that came with it.
RequestResult read_reply(const MessageHeader& header)
{
    RequestResult result;
    result.outcome = RequestOutcome::replied;
    result.reply = {static_cast<MessageType>(header.type), connection.socket.received + sizeof(MessageHeader),
                    header.payload_bytes, -1};
    if (result.reply.type == MessageType::reply || result.reply.type == MessageType::acknowledge) {
        result.reply.file_descriptor = take_passed_descriptor(&connection.socket);
        return result;
    }
    if (result.reply.type != MessageType::error || header.payload_bytes < sizeof(ErrorReply)) {
        return result_of(RequestOutcome::lost);
    }
    const ErrorReply* error = reinterpret_cast<const ErrorReply*>(result.reply.payload);
    result.outcome = error->code == ErrorCode::shutting_down ? RequestOutcome::unsent : RequestOutcome::refused;
    return result;
}

MessageHeader next_header(MessageType type, const RequestPiece* pieces, int piece_count)
{
    MessageHeader header;
    memset(&header, 0, sizeof(header));
    header.magic = protocol_magic;
    header.type = static_cast<uint16>(type);
    header.request_id = connection.next_request++;
    for (int i = 0; i < piece_count; ++i) header.payload_bytes += pieces[i].length;
    return header;
}

// Send one request and receive its reply; progress messages go to the callback.
RequestResult exchange(MessageType type, const RequestPiece* pieces, int piece_count, const RequestOptions& options)
{
    MessageHeader header = next_header(type, pieces, piece_count);
    const uint64 id = header.request_id;
    message_fault_point("before the request", header.type);
    switch (send_frame(&connection.socket, header, pieces, piece_count)) {
        case SendResult::sent:
            break;
        case SendResult::nothing_sent:
            return result_of(RequestOutcome::unsent);
        case SendResult::lost:
            return result_of(RequestOutcome::lost);
    }
    message_fault_point("request sent", header.type);
    for (;;) {
        if (!receive_frame(&connection.socket, &header, options.deadline, options.take_descriptor)) {
            return result_of(RequestOutcome::lost);
        }
        message_fault_point("reply received", header.type);
        // An older reply answers an abandoned request.
        if (header.request_id < id) {
            connection.passed_over = Max(connection.passed_over, header.request_id);
            continue;
        }
        if (header.request_id > id) return result_of(RequestOutcome::lost);
        if (header.type != static_cast<uint16>(MessageType::progress)) return read_reply(header);
        if (options.progress == nullptr || header.payload_bytes < sizeof(ProgressReply)) continue;
        ProgressReply progress;
        memcpy(&progress, connection.socket.received + sizeof(MessageHeader), sizeof(progress));
        progress.phase[sizeof(progress.phase) - 1] = '\0';
        options.progress(&progress, options.progress_state);
    }
}

// Receive the reply to a request that was sent ahead, skipping other replies.
RequestResult await(uint64 id)
{
    MessageHeader header;
    for (;;) {
        if (!receive_frame(&connection.socket, &header, 0, false)) return result_of(RequestOutcome::lost);
        message_fault_point("reply received", header.type);
        if (header.request_id == id) return read_reply(header);
        connection.passed_over = Max(connection.passed_over, header.request_id);
    }
}

enum class OpenResult { opened, nobody, other_version, refused, no_descriptors };

enum class KnownDevice { none, cpu, gpu };
KnownDevice known_device = KnownDevice::none;

void note_device(const EngineReply& reply)
{
    HelloReply hello;
    memcpy(static_cast<void*>(&hello), reply.payload, sizeof(hello));
    known_device = strncmp(hello.device, "cpu", 3) == 0 ? KnownDevice::cpu : KnownDevice::gpu;
}

// Send hello on a new socket, which is closed again unless the result is `opened`. A refusal is stored at `refused`:
// its bytes stay valid until the next connection receives.
OpenResult greet_engine(TimestampTz deadline, RequestResult* refused)
{
    HelloRequest hello;
    memset(&hello, 0, sizeof(hello));
    hello.version = protocol_version;
    hello.process_id = MyProcPid;
    hello.incarnation = server_incarnation();
    strlcpy(hello.build, build_name, sizeof(hello.build));
    const RequestPiece piece = {&hello, sizeof(hello)};
    const RequestResult result = try_request(MessageType::hello, &piece, 1, {.deadline = deadline});
    if (result.outcome == RequestOutcome::refused) {
        const bool other = refusal(result)->code == ErrorCode::other_version;
        close_engine();
        if (other) return OpenResult::other_version;
        *refused = result;
        return OpenResult::refused;
    }
    if (result.outcome != RequestOutcome::replied) return OpenResult::nobody;
    if (result.reply.payload_bytes >= sizeof(HelloReply)) {
        note_device(result.reply);
        return OpenResult::opened;
    }
    close_engine();
    return OpenResult::other_version;
}

OpenResult try_open(TimestampTz deadline, RequestResult* refused)
{
    switch (connect_socket(&connection.socket)) {
        case ConnectResult::connected:
            return greet_engine(deadline, refused);
        case ConnectResult::no_descriptors:
            return OpenResult::no_descriptors;
        default:
            return OpenResult::nobody;
    }
}

// Wait until no other session repeats a request: if the engine then ends again, this session's request is the cause.
// The wait ends after pgwarp.engine_timeout, even if the other session still has its turn.
void wait_for_retry_turn()
{
    const TimestampTz deadline = GetCurrentTimestamp() + setting_engine_timeout_ms * INT64CONST(1000);
    while (!claim_retry_turn() && GetCurrentTimestamp() < deadline) sleep_interruptibly(5);
}

[[noreturn]] void raise_no_engine()
{
    ereport(ERROR, (errcode(ERRCODE_CANNOT_CONNECT_NOW), errmsg("pgwarp-engine is not running and cannot be started"),
                    errhint("It needs a free background worker: raise max_worker_processes, or add pgwarp to "
                            "shared_preload_libraries.")));
}

[[noreturn]] void raise_no_descriptors()
{
    ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_RESOURCES),
                    errmsg("this session has no file descriptors left to connect to pgwarp-engine"),
                    errdetail("A connection takes two of them."), errhint("Raise max_files_per_process.")));
}

[[noreturn]] void raise_no_answer(OpenResult last)
{
    if (last == OpenResult::other_version) {
        ereport(ERROR, (errcode(ERRCODE_CANNOT_CONNECT_NOW),
                        errmsg("pgwarp-engine and this session's pgwarp library are of different versions"),
                        errhint("Connect again; if that does not help, restart the server.")));
    }
    ereport(ERROR,
            (errcode(ERRCODE_CANNOT_CONNECT_NOW),
             errmsg("pgwarp-engine did not answer within %d ms", setting_engine_timeout_ms),
             errhint("The server's log tells why it does not start; pgwarp.engine_timeout is how long to wait.")));
}

}  // namespace

static void expect_exit()
{
    if (connection.exit_registered) return;
    before_shmem_exit(leave_engine, static_cast<Datum>(0));
    connection.exit_registered = true;
}

bool engine_is_open()
{
    return connection.socket.descriptor != PGINVALID_SOCKET;
}

void close_engine()
{
    close_socket(&connection.socket);
}

bool try_open_engine(char** why)
{
    MemoryContext outer = CurrentMemoryContext;
    volatile bool opened = false;
    PG_TRY();
    {
        open_engine();
        opened = true;
    }
    PG_CATCH();
    {
        // The call only opens sockets and waits: there is nothing to be rolled back.
        MemoryContextSwitchTo(outer);
        ErrorData* error = CopyErrorData();
        if (error->sqlerrcode != ERRCODE_CANNOT_CONNECT_NOW) PG_RE_THROW();
        FlushErrorState();
        *why = pstrdup(error->message);
        FreeErrorData(error);
    }
    PG_END_TRY();
    return opened;
}

void open_engine()
{
    if (engine_is_open()) return;
    expect_exit();
    const TimestampTz deadline = GetCurrentTimestamp() + setting_engine_timeout_ms * INT64CONST(1000);
    int mismatches = 0;
    for (long delay = 1;; delay = Min(delay * 2, longest_connect_delay_ms)) {
        if (!ensure_launcher()) raise_no_engine();
        RequestResult refused;
        const OpenResult result = try_open(deadline, &refused);
        if (result == OpenResult::opened) break;
        if (result == OpenResult::refused) raise_refusal(refused);
        if (result == OpenResult::no_descriptors) raise_no_descriptors();
        if (result == OpenResult::other_version) ++mismatches;
        if (mismatches == most_version_mismatches || GetCurrentTimestamp() >= deadline) raise_no_answer(result);
        sleep_interruptibly(delay);
    }
    connection.epoch++;
}

bool join_engine()
{
    static TimestampTz not_before = 0;
    if (engine_is_open()) return true;
    const TimestampTz now = GetCurrentTimestamp();
    if (now < not_before || !launcher_is_running()) return false;
    expect_exit();
    RequestResult refused;
    const bool joined = try_open(now + join_patience_us, &refused) == OpenResult::opened;
    if (joined) {
        connection.epoch++;
    } else {
        not_before = GetCurrentTimestamp() + join_rest_us;
    }
    return joined;
}

RequestResult try_request(MessageType type, const RequestPiece* pieces, int piece_count, const RequestOptions& options)
{
    RequestResult result;
    PG_TRY();
    {
        result = exchange(type, pieces, piece_count, options);
    }
    PG_CATCH();
    {
        close_engine();
        PG_RE_THROW();
    }
    PG_END_TRY();
    if (result.outcome == RequestOutcome::unsent || result.outcome == RequestOutcome::lost) close_engine();
    return result;
}

RequestResult try_request_alone(MessageType type, const RequestPiece* pieces, int piece_count,
                                const RequestOptions& options)
{
    RequestResult result;
    wait_for_retry_turn();
    PG_TRY();
    {
        // A dying engine closes its connections one after the other. When the turn before ended with it, this session's
        // connection may still look open, and its request would seem to end the engine. Only a living engine answers
        // the greeting on a new connection.
        turn_fault_point();
        close_engine();
        open_engine();
        const bool equipped = options.equip == nullptr || options.equip(options.equip_state);
        result.outcome = RequestOutcome::unsent;
        if (equipped) result = try_request(type, pieces, piece_count, options);
    }
    PG_FINALLY();
    {
        release_retry_turn();
    }
    PG_END_TRY();
    return result;
}

bool send_ahead(MessageType type, const RequestPiece* pieces, int piece_count, RequestAhead* ahead)
{
    *ahead = {0, connection.epoch};
    if (!engine_is_open()) return false;
    const MessageHeader header = next_header(type, pieces, piece_count);
    volatile SendResult sent = SendResult::lost;
    PG_TRY();
    {
        message_fault_point("before the request ahead", header.type);
        sent = send_frame(&connection.socket, header, pieces, piece_count);
        message_fault_point("request ahead sent", header.type);
    }
    PG_CATCH();
    {
        close_engine();
        PG_RE_THROW();
    }
    PG_END_TRY();
    if (sent != SendResult::sent) {
        close_engine();
        return false;
    }
    ahead->id = header.request_id;
    return true;
}

RequestResult receive_ahead(RequestAhead* ahead)
{
    const uint64 id = ahead->id;
    const bool gone = id == 0 || !engine_is_open() || ahead->epoch != connection.epoch || id <= connection.passed_over;
    ahead->id = 0;
    if (gone) return result_of(RequestOutcome::unsent);
    RequestResult result;
    PG_TRY();
    {
        result = await(id);
    }
    PG_CATCH();
    {
        close_engine();
        PG_RE_THROW();
    }
    PG_END_TRY();
    if (result.outcome == RequestOutcome::lost) close_engine();
    return result;
}

void post_request(MessageType type, const void* bytes, uint32 length)
{
    if (!engine_is_open()) return;
    const RequestPiece piece = {bytes, length};
    MessageHeader header = next_header(type, &piece, 1);
    header.request_id = unanswered;
    if (!send_frame_at_once(&connection.socket, header, piece)) close_engine();
}

uint64 engine_connection_epoch()
{
    return connection.epoch;
}

bool engine_has_gpu()
{
    if (known_device != KnownDevice::none) return known_device == KnownDevice::gpu;
    return setting_device == static_cast<int>(DeviceSetting::cuda);
}

bool engine_available()
{
    static TimestampTz asked_at = 0;
    static bool available = false;
    if (engine_is_open()) return true;
    const TimestampTz now = GetCurrentTimestamp();
    if (asked_at == 0 || now < asked_at || now - asked_at > availability_lifetime_us) {
        available = ensure_launcher();
        asked_at = now;
    }
    return available;
}

}  // namespace pgwarp
