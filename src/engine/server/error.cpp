#include "engine/server/error.h"

#include <cstdio>
#include <new>

#include "engine/server/log.h"
#include "methods/method.h"

namespace pgwarp
{

ErrorReply make_error(ErrorCode code, const char* message, const char* hint)
{
    ErrorReply error{};
    error.code = code;
    std::snprintf(error.message, sizeof(error.message), "%s", message);
    std::snprintf(error.hint, sizeof(error.hint), "%s", hint);
    return error;
}

ErrorReply describe_exception()
{
    try {
        throw;
    } catch (const BadRequest& bad) {
        return make_error(ErrorCode::bad_request, bad.what());
    } catch (const Cancelled&) {
        return make_error(ErrorCode::cancelled, "cancelled");
    } catch (const UnknownBuild& unknown) {
        return make_error(ErrorCode::unknown_build, unknown.what());
    } catch (const UnknownMirror& unknown) {
        return make_error(ErrorCode::unknown_mirror, unknown.what());
    } catch (const IndexTooLarge& large) {
        return make_error(ErrorCode::out_of_memory, large.what(),
                          "Raise pgwarp.engine_memory. Until then, SET enable_indexscan = off to read the table.");
    } catch (const OutOfMemory& memory) {
        return make_error(ErrorCode::out_of_memory, memory.what(),
                          "Raise pgwarp.engine_memory, or release an index with pgwarp_release().");
    } catch (const DeviceOutOfMemory&) {
        return make_error(ErrorCode::out_of_device_memory, "the device ran out of memory",
                          "Raise pgwarp.engine_memory, or release an index with pgwarp_release().");
    } catch (const std::bad_alloc&) {
        return make_error(ErrorCode::out_of_memory, "the engine ran out of memory");
    } catch (const std::exception& other) {
        log_line(LogLevel::error, other.what());
        return make_error(ErrorCode::internal, other.what());
    } catch (...) {
        log_line(LogLevel::error, "unknown exception");
        return make_error(ErrorCode::internal, "unknown exception");
    }
}

}  // namespace pgwarp
