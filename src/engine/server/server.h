// The server: accepts connections of our own user, spreads them over the I/O threads, and drains at the end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/server/engine.h"
#include "engine/server/file_descriptor.h"

namespace pgwarp
{

class IoThread;

class Server
{
public:
    // Binds the socket. The caller holds the lock.
    Server(const EngineOptions& options, Device& device);
    ~Server();

    // Serves until stop(), a version mismatch, or until `signals` becomes readable (-1: no signals). Requests received
    // before that are answered, if they take no longer than 3 s.
    void run(int signals);
    // From any thread.
    void stop(const std::string& reason);

    Engine& engine() { return engine_; }

private:
    void accept_all();
    void adopt(FileDescriptor socket);
    void finish();

    FileDescriptor listener_;
    FileDescriptor event_;
    Engine engine_;
    std::uint64_t next_id_ = 0;
    std::vector<std::unique_ptr<IoThread>> threads_;  // end before the engine
};

}  // namespace pgwarp
