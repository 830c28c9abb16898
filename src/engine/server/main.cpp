// pgwarp-engine. Exit codes: 0 = drained when asked to; 1 = could not serve; those of exit_codes.h; others from the
// options.
#include <cblas.h>

#include <exception>

#include "engine/device/device.h"
#include "engine/server/log.h"
#include "engine/server/options.h"
#include "engine/server/process.h"
#include "engine/server/server.h"
#include "numeric/processors.h"
#include "protocol/exit_codes.h"

namespace
{

using namespace pgwarp;

constexpr auto lock_patience = std::chrono::seconds(3);  // a predecessor may still be draining

int serve(EngineOptions options)
{
    set_process_limits();
    const auto lock = ProcessLock::acquire(options.lock, lock_patience);
    if (!lock) {
        log_line(LogLevel::log, "another engine holds \"" + options.lock + "\"");
        return exit_other_engine;
    }
    const FileDescriptor signals = make_signal_descriptor();
    if (!follow_parent(options.parent_pid)) {
        log_line(LogLevel::log, "the parent process is gone");
        return 0;
    }
    // The pools of the engine share the work out: threads of BLAS within them would contend for the same cores.
    openblas_set_num_threads(1);
    if (options.threads == 0) options.threads = usable_processors();
    const auto device = Device::open(options, options.threads);
    Server(options, *device).run(signals.get());
    return 0;
}

}  // namespace

int main(int argc, char** argv)
{
    try {
        int exit_code = 0;
        const auto options = parse_options(argc, argv, exit_code);
        return options ? serve(*options) : exit_code;
    } catch (const std::exception& error) {
        log_line(LogLevel::fatal, error.what());
        return 1;
    }
}
