// Options, lock, peers, the parser of frames.
#include <gtest/gtest.h>

#include <poll.h>

#include <csignal>
#include <filesystem>

#include "engine/server/decode.h"
#include "engine/server/options.h"
#include "engine/server/process.h"

namespace pgwarp
{
namespace
{

TEST(EngineProcess, OnlyOurOwnUserIsServed)
{
    EXPECT_TRUE(peer_is_allowed(1000, 1000));
    EXPECT_FALSE(peer_is_allowed(1001, 1000));
    EXPECT_FALSE(peer_is_allowed(0, 1000)) << "root has no business here either";
    EXPECT_FALSE(peer_is_allowed(1000, 0));
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    const FileDescriptor first(pair[0]);
    const FileDescriptor second(pair[1]);
    const auto peer = peer_credentials(first.get());
    ASSERT_TRUE(peer);
    EXPECT_EQ(peer->uid, ::geteuid());
    EXPECT_FALSE(peer_credentials(-1));
}

TEST(EngineProcess, OneHolderOfTheLock)
{
    const std::string path = "/tmp/pgwarp-lock-" + std::to_string(::getpid());
    {
        const auto first = ProcessLock::acquire(path, std::chrono::milliseconds(0));
        ASSERT_TRUE(first);
        EXPECT_FALSE(ProcessLock::acquire(path, std::chrono::milliseconds(50)));
    }
    EXPECT_TRUE(ProcessLock::acquire(path, std::chrono::milliseconds(0)));
    std::filesystem::remove(path);
    EXPECT_THROW(ProcessLock::acquire("/nonexistent/lock", std::chrono::milliseconds(0)), std::system_error);
}

TEST(EngineProcess, SignalsBecomeReadable)
{
    const FileDescriptor signals = make_signal_descriptor();
    pollfd watched{signals.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&watched, 1, 0), 0);
    // Whichever thread gets it, also one that was there before.
    ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
    EXPECT_EQ(::poll(&watched, 1, 5000), 1);
    std::signal(SIGTERM, SIG_DFL);
    std::signal(SIGINT, SIG_DFL);
}

TEST(EngineProcess, Options)
{
    const auto parse = [](std::vector<const char*> arguments, int& code) {
        arguments.insert(arguments.begin(), "pgwarp-engine");
        return parse_options(static_cast<int>(arguments.size()), arguments.data(), code);
    };
    int code = 0;
    const auto defaults = parse({}, code);
    ASSERT_TRUE(defaults);
    EXPECT_EQ(defaults->socket, socket_path);
    EXPECT_EQ(defaults->io_threads, default_io_threads());
    EXPECT_GE(default_io_threads(), 2U);
    const auto given =
        parse({"--device", "cpu", "--memory", "1000000000000", "--threads", "3", "--parent-pid", "12"}, code);
    ASSERT_TRUE(given);
    EXPECT_EQ(given->device, DeviceChoice::cpu);
    EXPECT_EQ(given->memory, 1000000000000U);
    EXPECT_EQ(given->threads, 3U);
    EXPECT_EQ(given->parent_pid, 12);
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    EXPECT_FALSE(parse({"--device", "abacus"}, code));
    EXPECT_NE(code, 0);
    EXPECT_FALSE(parse({"--io-threads", "0"}, code));
    testing::internal::GetCapturedStderr();
    testing::internal::GetCapturedStdout();
}

TEST(EngineFrames, ArriveInAnyPieces)
{
    std::vector<std::byte> stream;
    const std::size_t lengths[] = {sizeof(MirrorRequest), sizeof(SearchRequest) + 4, max_payload,
                                   sizeof(SearchRequest) + 12};
    for (std::size_t length : lengths) {
        MessageHeader header{};
        header.magic = protocol_magic;
        header.type =
            static_cast<std::uint16_t>(length == sizeof(MirrorRequest) ? MessageType::release : MessageType::search);
        header.payload_bytes = static_cast<std::uint32_t>(length);
        const auto bytes = std::as_bytes(std::span(&header, 1));
        stream.insert(stream.end(), bytes.begin(), bytes.end());
        for (std::size_t i = 0; i < length; ++i) stream.push_back(static_cast<std::byte>(i * 7 + length));
    }
    for (std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{1000}, std::size_t{1} << 22}) {
        FrameReader reader;
        std::size_t sent = 0;
        std::size_t frames = 0;
        while (sent < stream.size()) {
            const auto space = reader.space();
            const std::size_t bytes = std::min({step, space.size(), stream.size() - sent});
            ASSERT_GT(bytes, 0U);
            std::memcpy(space.data(), stream.data() + sent, bytes);
            reader.filled(bytes);
            sent += bytes;
            while (const auto frame = reader.next()) {
                const std::size_t length = lengths[frames++];
                ASSERT_EQ(frame->payload.size(), length);
                EXPECT_EQ(reinterpret_cast<std::uintptr_t>(frame->payload.data()) % 8, 0U);
                for (std::size_t i = 0; i < length; ++i)
                    ASSERT_EQ(frame->payload[i], static_cast<std::byte>(i * 7 + length));
            }
        }
        EXPECT_EQ(frames, 4U);
        EXPECT_EQ(reader.pending(), 0U);
    }
}

}  // namespace
}  // namespace pgwarp
