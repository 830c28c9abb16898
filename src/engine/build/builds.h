// Index builds: rows collected from several connections, one build run on its own thread, the arrays read back.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/build/streamed_rows.h"
#include "engine/server/busy_poll.h"
#include "engine/server/error.h"
#include "methods/method.h"
#include "protocol/messages.h"

namespace pgwarp
{

inline constexpr int build_nice = 5;  // nice value of building threads: queries come first where cores are short

// The results of a finished build.
struct BuildOutcome {
    std::uint64_t rows = 0;
    Calibration calibration;
    ParameterList options;
    std::vector<ArrayShape> arrays;
};

using BuilderMaker = std::unique_ptr<Builder> (*)(const IndexShape& shape, const ParameterList& options);
// The maker of builders for a kind of build; null when the method has none.
BuilderMaker maker_of(const MethodFactory& method, BuildKind kind);

class Build
{
public:
    // second: builds when `method` runs out of device memory; may be null.
    Build(std::uint64_t owner, const BuildBeginRequest& request, const MethodFactory& method,
          const MethodFactory* second);

    std::uint64_t owner() const { return owner_; }
    const IndexShape& shape() const { return shape_; }
    void cancel() { cancel_.cancel(); }
    // Whether rows are encoded as they come.
    bool streams() const { return streamed_ && streamed_->is_trained(); }

    // The number of rows of a sample on which the builder wants to be trained before rows come; 0: none.
    std::uint64_t wanted_sample() const;
    // Checks the rows and adds them; from any thread, until the run begins. Throws BadRequest.
    void append(std::span<const Tid> tids, const RowView& rows, ThreadPool& pool);
    // Takes a piece of an array of the index that is extended, or of the sample. From any thread. Throws BadRequest.
    void give(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes, ThreadPool& pool);
    // Closes the collecting phase; throws BadRequest when it is closed, or rows were refused.
    void close();
    // Runs the build after close(). Throws the exceptions of the builder.
    BuildOutcome run(const std::function<void(const ProgressReply&)>& progress, ThreadPool& pool);
    // Copies a part of an array after run(). Throws BadRequest.
    void read(std::uint32_t array, std::uint64_t offset, std::span<std::byte> out) const;

private:
    enum class Phase { collecting, running, done, failed };
    void gather(std::span<const Tid> tids, const RowView& rows);
    std::span<const Tid> tids() const { return streams() ? streamed_->tids() : rows_.tids(); }
    void collect_arrays();
    void run_builder(const BuildProgress& progress, ThreadPool& pool);
    void read_own(const ArrayShape& array, std::uint64_t offset, std::span<std::byte> out) const;
    void read_tids(const ArrayShape& array, std::uint64_t offset, std::span<std::byte> out) const;

    const std::uint64_t owner_;
    const IndexShape shape_;
    CancelToken cancel_;
    std::shared_mutex phase_mutex_;  // shared by append()
    std::atomic<Phase> phase_{Phase::collecting};
    std::atomic<bool> refused_{false};  // refused rows lie among the others
    const std::uint64_t expected_rows_;
    RowBuffer rows_;  // none where they stream
    std::unique_ptr<Builder> builder_;
    std::unique_ptr<Builder> second_;
    std::unique_ptr<StreamedRows> streamed_;  // null: the builder gets its rows gathered
    std::vector<ArrayShape> arrays_;
    std::size_t own_arrays_ = 0;  // the first ones: addresses and attributes, which the engine serves itself
};

class Builds
{
public:
    Builds(ThreadPool& pool, BusyPoll& busy_poll) : pool_(pool), busy_poll_(busy_poll) {}
    ~Builds() { stop(); }

    std::uint64_t begin(std::uint64_t owner, const BuildBeginRequest& request, const MethodFactory& method,
                        const MethodFactory* second);
    // As the functions of the build. While rows are encoded or a builder is trained, no thread polls.
    void append(Build& build, std::span<const Tid> tids, const RowView& rows);
    void give(Build& build, const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes);
    // Throws UnknownBuild.
    std::shared_ptr<Build> find(std::uint64_t token);
    std::shared_ptr<Build> find_owned(std::uint64_t token, std::uint64_t owner);
    void end(std::uint64_t token, std::uint64_t owner);
    void connection_closed(std::uint64_t connection);
    std::uint32_t count() const;

    // Runs a build on a thread of its own, which calls `done` or `failed`.
    void start(std::shared_ptr<Build> build, std::function<void(const ProgressReply&)> progress,
               std::function<void(const BuildOutcome&)> done, std::function<void(const ErrorReply&)> failed);
    // Cancels all builds and waits for their end.
    void stop();

private:
    BuildOutcome run_build(Build& build, const std::function<void(const ProgressReply&)>& progress);

    ThreadPool& pool_;
    BusyPoll& busy_poll_;
    mutable std::mutex mutex_;
    std::condition_variable idle_;
    std::unordered_map<std::uint64_t, std::shared_ptr<Build>> builds_;
    std::map<std::uint64_t, std::weak_ptr<Build>> running_;
    std::uint64_t runs_ = 0;
};

}  // namespace pgwarp
