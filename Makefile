# pgwarp.so by PGXS; pgwarp-engine by CMake.
EXTENSION = pgwarp
MODULE_big = pgwarp
DATA = $(wildcard src/sql/pgwarp--*.sql)

# Sources that are compiled one by one: they have functions for several processors, depend on flags, or share the names of
# their callbacks with another file of the folder.
CXX_SOURCES = src/methods/description.cpp $(wildcard src/methods/*/description.cpp src/methods/*/estimate.cpp) \
	src/numeric/bits.cpp src/numeric/canonical.cpp src/numeric/edit_distance.cpp src/numeric/gram_distance.cpp \
	src/numeric/jaro_winkler.cpp src/postgres/storage/fault_point.cpp src/postgres/client/message_fault.cpp \
	src/postgres/executor/knn_filter.cpp src/postgres/executor/knn_partitions.cpp
# All others of a folder are compiled as one unit, .deps/units/FOLDER.cpp, which includes them: most of the time of each
# would go into the same headers.
FOLDERS = $(patsubst src/%/,%,$(sort $(dir $(wildcard src/postgres/*.cpp src/postgres/*/*.cpp src/protocol/*.cpp))))
UNITS = $(foreach folder,$(FOLDERS),.deps/units/$(subst /,_,$(folder)).cpp)
ENGINE_BUILD ?= build/engine
ENGINE_CMAKE_FLAGS ?=

# A build for tests has fault points, on which two files depend, and an access method for tests.
FAULTS := $(findstring -DPGWARP_FAULTS,$(filter -DPGWARP_FAULTS=ON,$(ENGINE_CMAKE_FLAGS)))
$(shell mkdir -p .deps && echo '$(FAULTS)' | cmp -s - .deps/faults || echo '$(FAULTS)' >.deps/faults)
ifneq ($(FAULTS),)
CXX_SOURCES += test/overlap_index/overlap_index.cpp test/unit/overlap_method/description.cpp
endif
OBJS = $(UNITS:.cpp=.o) $(CXX_SOURCES:.cpp=.o)
# A unit changes only with the names of its files.
hash := \#
unit_text = $(patsubst src/%,$(hash)include "%"\n,$(filter-out $(CXX_SOURCES),$(sort $(wildcard src/$(1)/*.cpp))))
write_unit = printf '%b' '$(call unit_text,$(1))' >.deps/units/new && { cmp -s .deps/units/new $(2) || mv .deps/units/new $(2); }
$(shell mkdir -p .deps/units; $(foreach folder,$(FOLDERS),$(call write_unit,$(folder),.deps/units/$(subst /,_,$(folder)).cpp);))

REGRESS = $(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql)))
REGRESS_OPTS = --load-extension=pgwarp
TAP_TESTS = 1
PROVE_TESTS ?= test/tap/*.pl

PG_CPPFLAGS = -I$(srcdir)/src $(if $(FAULTS),$(FAULTS) -I$(srcdir)/test/unit)
PG_CXXFLAGS = -std=c++20 -O3 -Wall -Wextra -Werror -Wno-register -Wno-volatile -Wno-unused-parameter -Wno-missing-field-initializers \
	-Wno-subobject-linkage -fno-exceptions -ffp-contract=off -fvisibility=hidden -fvisibility-inlines-hidden $(EXTRA_CXXFLAGS)
# PostgreSQL loads libraries into one namespace, and another one may export what this one does (pgvector has vector_out):
# a library that was loaded first must not be called in place of this one's own functions.
SHLIB_LINK += -Wl,-Bsymbolic -lhwy -lstdc++ -lm

override with_llvm := no
PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# Another server's headers: everything is compiled anew.
$(shell echo '$(VERSION) $(includedir_server)' | cmp -s - .deps/server || echo '$(VERSION) $(includedir_server)' >.deps/server)
$(OBJS): .deps/server
# Other flags too.
$(shell echo '$(EXTRA_CXXFLAGS)' | cmp -s - .deps/flags || echo '$(EXTRA_CXXFLAGS)' >.deps/flags)
$(OBJS): .deps/flags

# Header dependencies: PGXS knows none for C++.
%.o: %.cpp
	@mkdir -p $(dir .deps/$@)
	$(COMPILE.cc) -MMD -MP -MF .deps/$@.d -o $@ $<
-include $(OBJS:%=.deps/%.d)
src/postgres/storage/fault_point.o src/postgres/client/message_fault.o: .deps/faults
# Flags are in this file.
$(OBJS): Makefile

# Ninja knows nothing of make's jobs: it is told their number.
all: engine
.PHONY: engine
engine:
	cmake -S $(srcdir) -B $(ENGINE_BUILD) -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DPGWARP_TESTS=OFF \
		$(if $(shell command -v ccache),-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache) \
		$(ENGINE_CMAKE_FLAGS)
	cmake --build $(ENGINE_BUILD) $(filter -j%,$(MAKEFLAGS)) --target product

# The launcher looks for the engine beside pgwarp.so.
install: install-engine
.PHONY: install-engine
install-engine: engine installdirs
	$(INSTALL_PROGRAM) $(ENGINE_BUILD)/pgwarp-engine '$(DESTDIR)$(pkglibdir)/pgwarp-engine'
	if [ -f $(ENGINE_BUILD)/cuda/pgwarp-cuda.so ]; then \
		$(INSTALL_SHLIB) $(ENGINE_BUILD)/cuda/pgwarp-cuda.so '$(DESTDIR)$(pkglibdir)/pgwarp-cuda.so'; fi
uninstall: uninstall-engine
.PHONY: uninstall-engine
uninstall-engine:
	rm -f '$(DESTDIR)$(pkglibdir)/pgwarp-engine' '$(DESTDIR)$(pkglibdir)/pgwarp-cuda.so'
clean: clean-engine
.PHONY: clean-engine
clean-engine:
	rm -rf $(ENGINE_BUILD) .deps
